import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { type Demo, startDemo } from '../../examples/demo/start-demo'
import type { TestClock } from '../support/clock'

export interface DemoRun extends Demo {
  /** Rows as the database holds them, read over a connection of its own. */
  rows(table: string): Record<string, unknown>[]
  readonly clock: TestClock
}

/** The demo on free ports, its database in a file that goes with it. */
export async function runDemo(): Promise<DemoRun> {
  const folder = await mkdtemp(path.join(tmpdir(), 'doorward-demo-'))
  const databaseFile = path.join(folder, 'demo.sqlite')
  const clock = clockAhead()
  const demo = await startDemo({ databaseFile, now: clock.now })
  return {
    ...demo,
    clock,
    rows(table) {
      const database = new Database(databaseFile, { readonly: true })
      try {
        // better-sqlite3 types rows as unknown; without pluck() and raw() they are objects keyed by column.
        return database.prepare(`SELECT * FROM ${table}`).all() as Record<string, unknown>[]
      } finally {
        database.close()
      }
    },
    async close() {
      await demo.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The real time, which the providers and the browser go by, until the app's is moved. */
function clockAhead(): TestClock {
  let ahead = 0
  return {
    now: () => new Date(Date.now() + ahead),
    advance(seconds) {
      ahead += seconds * 1000
    },
  }
}
