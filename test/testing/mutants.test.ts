import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore, type KnexStore } from '../../src'
import { storeContract } from '../../src/testing'
import { databases, type OpenDatabase } from '../support/databases'
import { FIELD_MUTANTS } from './field-mutants'
import { casesThatCatch, type Mutant } from './mutant'
import { VERB_MUTANTS } from './verb-mutants'

let opened: OpenDatabase
let store: KnexStore

beforeAll(async () => {
  const sqlite = (await databases()).find(({ name }) => name === 'sqlite')
  if (!sqlite) throw new Error('SQLite is always there')
  opened = await sqlite.open({ memory: true })
  await createAuthTables(opened.knex)
  store = createKnexStore({ knex: opened.knex })
})
afterAll(() => opened?.close())
beforeEach(removeRows)

/** What one mutant leaves behind must not fail the cases of the next. */
async function removeRows(): Promise<void> {
  for (const table of ['sessions', 'recovery_codes', 'user_tokens', 'identities', 'users']) await opened.knex(`auth_${table}`).delete()
}

async function survivorsOf(mutants: readonly Mutant[]): Promise<string[]> {
  const survivors: string[] = []
  for (const mutant of mutants) {
    await removeRows()
    if ((await casesThatCatch(mutant, store, opened.knex)).length === 0) survivors.push(mutant.name)
  }
  return survivors
}

describe('the store as it is keeps the contract', () => {
  for (const { name, run } of storeContract({ makeStore: async () => store })) test(name, run)
})

test('the contract may run twice on one database, with the rows of the first run still there', async () => {
  for (let runs = 0; runs < 2; runs += 1) for (const { run } of storeContract({ makeStore: async () => store })) await run()
})

describe('storeContract finds a field that is lost, invented or changed', () => {
  test.each(FIELD_MUTANTS)('%s', async (_verb, mutants) => {
    expect(mutants.length).toBeGreaterThan(0)
    expect(await survivorsOf(mutants)).toEqual([])
  })
})

describe('storeContract finds', () => {
  test.each(VERB_MUTANTS)('$name', async (mutant) => {
    expect(await casesThatCatch(mutant, store, opened.knex)).not.toEqual([])
  })
})
