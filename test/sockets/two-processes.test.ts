import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openAs, signedIn } from '../local/people'
import { onDatabase } from '../social/redirect-steps'
import { databases } from '../support/databases'
import { repeat, startProcess } from '../support/two-processes'
import { endOf, holding, stateOf } from './handshakes'
import type { Answer, Task } from './logout-child'

const child = join(import.meta.dirname, 'logout-child.ts')
const hold = holding()

for (const database of await databases()) {
  describe(database.name, () => {
    const { start, opened } = onDatabase(database)

    test('a logout in another process aborts the signal within liveSessionPollSeconds, and no other signal', async () => {
      const host = await start({ settings: { liveSessionPollSeconds: 1 } })
      const other = await startProcess<Task, Answer>(child, opened())
      try {
        const bob = await signedIn(host)
        const stays = hold(await host.auth.guards.verifyToken(bob.token)).signal
        expect(stateOf(stays)).toBe('open')
        await repeat(async () => {
          const ada = await signedIn(host)
          const again = await openAs(host, ada.userId)
          const [left, open] = [hold(await host.auth.guards.verifyToken(ada.token)), hold(await host.auth.guards.verifyToken(again.token))]
          expect([stateOf(left.signal), stateOf(open.signal)]).toEqual(['open', 'open'])
          const answer = await other.ask({ refreshToken: ada.refreshToken })
          if ('error' in answer) throw new Error(answer.error)
          expect(await endOf(left.signal, 3_000)).toBe('INVALID_TOKEN')
          expect(performance.timeOrigin + performance.now() - answer.at).toBeLessThan(1_600)
          expect([stateOf(open.signal), stateOf(stays)]).toEqual(['open', 'open'])
        }, 3)
      } finally {
        await other.stop()
      }
    })

    test('a logout in another process at the moment of the check leaves no signal open', async () => {
      const host = await start({ settings: { liveSessionPollSeconds: 1 } })
      const other = await startProcess<Task, Answer>(child, opened())
      try {
        await repeat(async () => {
          const ada = await signedIn(host)
          const [, checked] = await Promise.allSettled([
            other.ask({ refreshToken: ada.refreshToken }),
            host.auth.guards.verifyToken(ada.token),
          ])
          if (checked.status === 'rejected') expect(checked.reason.code).toBe('INVALID_TOKEN')
          else expect(await endOf(hold(checked.value).signal, 3_000)).toBe('INVALID_TOKEN')
        }, 3)
      } finally {
        await other.stop()
      }
    })
  })
}
