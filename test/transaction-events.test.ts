import { expect, test } from 'vitest'
import { type AuthContext, transaction } from '../src/context'
import type { AuthStore } from '../src/store/auth-store'

/** A context whose store commits after `attempts` attempts, and what its events told. */
function context(attempts = 1) {
  const told: string[] = []
  const run = async (work: (store: AuthStore) => Promise<unknown>) => {
    for (let attempt = 1; attempt < attempts; attempt++) await work(store)
    const result = await work(store)
    told.push('commit')
    return result
  }
  const store = { transaction: run } as unknown as AuthStore // no other verb is called
  const events = { on: () => () => undefined, emit: (_name: string, { userId }: { userId: string }) => void told.push(userId) }
  const ctx = { store, events, settings: { unitTimeoutSeconds: 30 } } as unknown as AuthContext // what `transaction` reads
  const emit = (within: AuthContext, userId: string) => within.events.emit('mfa.disabled', { userId })
  return { ctx, told, emit }
}

test('the events of a transaction are emitted after its commit, in their order', async () => {
  const { ctx, told, emit } = context()
  await transaction(ctx, async (ctx) => {
    emit(ctx, 'one')
    emit(ctx, 'other')
  })
  expect(told).toEqual(['commit', 'one', 'other'])
})

test('a work that throws emits nothing', async () => {
  const { ctx, told, emit } = context()
  const work = async (ctx: AuthContext) => {
    emit(ctx, 'lost')
    throw new Error('no')
  }
  await expect(transaction(ctx, work)).rejects.toThrow('no')
  expect(told).toEqual([])
})

test('an attempt that a conflict rolled back emits nothing', async () => {
  const { ctx, told, emit } = context(3)
  let attempt = 0
  await transaction(ctx, async (ctx) => emit(ctx, `attempt ${++attempt}`))
  expect(told).toEqual(['commit', 'attempt 3'])
})

test('the events of an inner transaction wait for the outer commit, and are lost with the outer work', async () => {
  const { ctx, told, emit } = context()
  const work = async (outer: AuthContext) => {
    await transaction(outer, async (inner) => emit(inner, 'inner'))
    expect(told).toEqual(['commit'])
  }
  await transaction(ctx, work)
  expect(told.splice(0)).toEqual(['commit', 'commit', 'inner'])
  const failing = transaction(ctx, async (outer) => {
    await work(outer)
    throw new Error('no')
  })
  await expect(failing).rejects.toThrow('no')
  expect(told).toEqual(['commit'])
})
