import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { databases } from '../support/databases'
import { everyAct } from '../support/torture'
import { type Act, acts } from './acts'
import { type CutRig, cutRig } from './cut-rig'
import { sweep } from './sweep'
import { type WellHost, wellHost } from './well-host'

/** One of each kind; the others take minutes, and are for `npm run torture -- faults`. */
const oneOfEach = ['POST /login', 'POST /refresh', 'GET /oauth/corp/callback of a new identity']

for (const database of await databases()) {
  const { name } = database
  if (name === 'sqlite') continue // no connection that could be cut

  describe(`a connection to ${name} that is cut`, { timeout: 120_000 }, () => {
    let host: WellHost
    let rig: CutRig

    beforeAll(async () => {
      host = await wellHost(database)
      rig = await cutRig(host, name)
    }, 60_000)
    afterAll(async () => {
      await rig?.close()
      await host?.close()
    })

    const chosen = Object.entries<Act>(acts).filter(([act]) => everyAct || oneOfEach.includes(act))
    test.each(chosen)('F06: at each statement of %s: all of it is kept or nothing, and a 503 gives nothing away', async (_name, act) => {
      const { violations, strikes, before, after } = await sweep(act, rig)
      expect(violations).toEqual([])
      expect(strikes).toBeGreaterThan(1)
      expect(before + after).toBe(strikes)
    })
  })
}
