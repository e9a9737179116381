import { describe, expect, test } from 'vitest'
import { descriptionOf } from '../../src/http/description'
import { post } from '../local/people'
import { challengeOf, verify } from '../mfa/people'
import { databases } from '../support/databases'
import { mountedRoutes } from '../support/mounted-routes'
import { codeOf, onPasskeys, ownerWithFactor, presented, rejected, withFactors } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe('limits of passkeys', () => {
  const { start } = onPasskeys(sqlite)

  test('every route of passkeys has a route limit, which comes first', async () => {
    mountedRoutes.length = 0
    await start({ settings: { ...withFactors, tokenDelivery: 'both' } })
    const routes = mountedRoutes.flat().filter(({ path }) => path.includes('passkey'))
    expect(routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
      'DELETE /passkeys/:id',
      'GET /passkeys',
      'GET /passkeys/signal',
      'PATCH /passkeys/:id',
      'POST /cookie/passkeys/login',
      'POST /cookie/reauthenticate/passkey/options',
      'POST /mfa/passkey/options',
      'POST /passkeys/login',
      'POST /passkeys/login/options',
      'POST /passkeys/register',
      'POST /passkeys/register/options',
      'POST /reauthenticate/passkey/options',
      'POST /session/passkeys/login',
    ])
    for (const { path, before = [] } of routes) {
      const limits = before.map((step) => descriptionOf(step)?.limit)
      // Before it: at most the cross-site rule, which costs nothing.
      expect([path, limits.findIndex((limit) => limit !== undefined)]).toEqual([path, /^\/(cookie|session)\//.test(path) ? 1 : 0])
    }
  })

  test('one first step takes five bad passkeys; another first step of the account, and its codes, go on', async () => {
    const host = await start({ settings: withFactors })
    const owner = await ownerWithFactor(host)
    const step = async (mfaToken: string, lies = {}) => ({
      mfa_token: mfaToken,
      ...(await presented(host, owner.authenticator, { path: '/mfa/passkey/options', body: { mfa_token: mfaToken }, lies })),
    })
    const [mfaToken, another] = [await challengeOf(host, owner), await challengeOf(host, owner)]
    const [bad, good] = [await step(mfaToken, { origin: 'https://evil.example' }), await step(mfaToken)]
    for (let count = 0; count < 5; count++) expect(codeOf(await post(host, '/mfa/verify', bad))).toEqual(rejected)
    const throttled = await post(host, '/mfa/verify', good)
    expect([...codeOf(throttled), Number(throttled.headers['retry-after']) > 0]).toEqual([429, 'MFA_THROTTLED', true])

    expect((await post(host, '/mfa/verify', await step(another))).status).toBe(200)
    expect((await verify(host, mfaToken, owner.app.nextCode())).status).toBe(200)
  })

  test('what was no bad passkey is not counted', async () => {
    const host = await start({ settings: withFactors })
    const owner = await ownerWithFactor(host)
    const mfaToken = await challengeOf(host, owner)
    const own = async () => ({
      mfa_token: mfaToken,
      ...(await presented(host, owner.authenticator, { path: '/mfa/passkey/options', body: { mfa_token: mfaToken } })),
    })
    const answers = await Promise.all((await Promise.all([1, 2, 3, 4, 5].map(own))).map((answer) => post(host, '/mfa/verify', answer)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401, 401])
    expect(codeOf(await post(host, '/mfa/verify', await own().catch(() => ({ mfa_token: mfaToken, code: '' }))))).toEqual([
      401,
      'MFA_TOKEN_INVALID',
    ])
  })
})
