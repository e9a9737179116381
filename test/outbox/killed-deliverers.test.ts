import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createAuthTables, createKnexStore } from '../../src'
import { newUser } from '../../src/testing/records'
import { databases, type OpenDatabase } from '../support/databases'
import { raceRounds, raceTimeout } from '../support/torture'
import type { DeliveringOrder } from './delivering-child'

/** `npm run torture -- races` kills more often. */
const kills = raceRounds(4)

async function startChild(order: DeliveringOrder): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'delivering-child.ts'), { execArgv: ['--import', 'tsx'], serialization: 'advanced' })
  child.send(order)
  const [said] = await Promise.race([once(child, 'message'), once(child, 'exit')])
  if (said !== 'ready') throw new Error('the other process did not start')
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

async function waiting({ knex }: OpenDatabase): Promise<number> {
  return (await knex('auth_outbox').whereNull('delivered_at').select('id')).length
}

const found = await databases()

describe('two processes that change accounts and deliver, each killed again and again', () => {
  test.each(found.map((database) => [database.name, database] as const))(
    'on %s, every event is delivered at least once, in the order of its person',
    async (_name, database) => {
      const opened = await database.open()
      const folder = mkdtempSync(join(tmpdir(), 'outbox-'))
      const children: ChildProcess[] = []
      onTestFinished(async () => {
        for (const child of children) child.kill('SIGKILL')
        rmSync(folder, { recursive: true })
        await opened.close()
      })
      const { knex, config } = opened
      if (!config) throw new Error('this database lives in one process only')
      await createAuthTables(knex)
      const { users } = createKnexStore({ knex })
      const userIds: string[] = []
      for (let number = 0; number < 6; number++) userIds.push((await users.insert(newUser())).id)
      const order: DeliveringOrder = { config, file: join(folder, 'delivered'), userIds, changes: true }

      children.push(await startChild(order), await startChild(order))
      for (let round = 0; round < kills; round++) {
        await sleep(50 + Math.random() * 200)
        const place = round % 2
        await kill(children[place] as ChildProcess)
        children[place] = await startChild(order)
      }
      for (const child of children) await kill(child)
      const last = await startChild({ ...order, changes: false })
      children.push(last)
      for (let waited = 0; (await waiting(opened)) > 0; waited += 100) {
        if (waited > 60_000 + kills * 1_000) throw new Error('events wait for too long')
        await sleep(100)
      }
      const exit = once(last, 'exit')
      last.disconnect()
      await exit

      const rows: { id: string; user_id: string }[] = await knex('auth_outbox').orderBy('seq').select('id', 'user_id')
      const delivered = existsSync(order.file) ? readFileSync(order.file, 'utf8').split('\n').slice(0, -1) : []
      expect(rows.length).toBeGreaterThan(kills)
      const first = [...new Set(delivered)]
      expect(first.toSorted()).toEqual(rows.map(({ id }) => id).toSorted())
      for (const userId of userIds) {
        const own = rows.filter((row) => row.user_id === userId).map(({ id }) => id)
        expect(first.filter((id) => own.includes(id))).toEqual(own)
      }
    },
    raceTimeout(240_000),
  )
})
