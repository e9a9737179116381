import { afterEach } from 'vitest'
import { type Mounted, type MountOptions, mount } from './app'
import { type Database, databases } from './databases'

/** A mounted app on an empty database for each call, closed after the test that made it; SQLite in memory unless told otherwise. */
export function appPerTest(database?: Database): (options?: Omit<MountOptions, 'knex'>) => Promise<Mounted> {
  const opened: { close(): Promise<unknown> }[] = []
  afterEach(async () => {
    for (const one of opened.splice(0).reverse()) await one.close()
  })
  return async (options = {}) => {
    const chosen = database ?? (await databases())[0]
    if (!chosen) throw new Error('no database answers')
    const { knex, close } = await chosen.open({ memory: true })
    opened.push({ close })
    const mounted = await mount({ knex, ...options })
    opened.push(mounted)
    return mounted
  }
}
