import { describe, expect, test } from 'vitest'
import { bearerOf, post, signedIn } from '../local/people'
import { databases } from '../support/databases'
import { challengeOf, codeRoutes, enrolled, guess, mfaSettings, onMfa, outcome, verify } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe('in a session that is no longer fresh', () => {
  const { start } = onMfa(sqlite)
  const stale = { accessTokenTtlSeconds: 3_600 }

  test.each([true, false])(
    'an account without a second factor gets 422 MFA_NOT_ENROLLED from a change that needs a code; mfaEnabled: %j (25.9.7)',
    async (mfaEnabled) => {
      const host = await start({ settings: { ...mfaSettings, ...stale, mfaEnabled } })
      const member = await signedIn(host)
      host.clock.advance(901)
      const paths = mfaEnabled ? codeRoutes : (['/password-change/mfa'] as const)
      for (const path of paths) expect([path, outcome(await guess(host, path, member, '123456'))]).toEqual([path, 'MFA_NOT_ENROLLED'])
    },
  )

  test('an exhausted limit of codes answers 429 MFA_THROTTLED, and a refusal of the stale session counts no code (25.9.7)', async () => {
    const host = await start({ settings: { ...stale, freshSessionSeconds: 60 } })
    const person = await enrolled(host)
    host.clock.advance(61)
    for (let count = 0; count < 6; count++)
      for (const path of codeRoutes)
        expect([path, outcome(await guess(host, path, person, '000000'))]).toEqual([path, 'REAUTHENTICATION_REQUIRED'])
    for (let count = 0; count < 5; count++)
      expect(outcome(await verify(host, await challengeOf(host, person), '000000'))).toBe('MFA_CODE_INVALID')
    for (const path of codeRoutes) expect([path, outcome(await guess(host, path, person, '000000'))]).toEqual([path, 'MFA_THROTTLED'])
  })

  test('a route that takes a code for an undo-proof change refuses the code of an account without a factor first (25.9.7)', async () => {
    const host = await start({ settings: stale })
    const member = await signedIn(host)
    host.clock.advance(901)
    const unlink = (body: object) => post(host, '/oauth/accounts/unlink', { provider: 'corp', ...body }, bearerOf(member))
    expect(outcome(await unlink({ code: '123456' }))).toBe('MFA_NOT_ENROLLED')
    expect(outcome(await unlink({}))).toBe('REAUTHENTICATION_REQUIRED')
  })
})
