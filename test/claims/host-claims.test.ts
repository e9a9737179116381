import { describe, expect, test, vi } from 'vitest'
import { type AccessTokenClaimsHook, getAuth } from '../../src'
import { deriveKeys } from '../../src/core/keys'
import { askForClaims } from '../../src/sessions/ask-for-claims'
import { toPublicUser } from '../../src/store/user-records'
import { bearerOf, password, post, signedIn } from '../local/people'
import { userRecord } from '../social/accounts-at-hand'
import { testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { logTap } from '../support/log-tap'
import { claimsAt, signedWithSecret } from '../support/signing-keys'

const start = appPerTest()

/** What the host is asked, and what comes of its answer: the claims, or the refusal's log entry. */
async function ask(answer: unknown, user = toPublicUser(userRecord())) {
  const logger = logTap()
  const hook = (async () => answer) as AccessTokenClaimsHook // what a host without types may return
  const claims = await askForClaims({ accessTokenClaims: hook, logger }, user, ['pwd']).catch(({ code }) => code)
  return { claims, entries: logger.entries }
}

const reserved = 'iss sub aud exp nbf iat jti typ amr email sid client_id auth_time act scope'.split(' ')

describe('what the host may return', () => {
  test.each([
    ['nothing', undefined, {}],
    [
      'JSON of every kind',
      { roles: ['a'], n: 1, yes: true, no: null, deep: { x: [{}] } },
      { roles: ['a'], n: 1, yes: true, no: null, deep: { x: [{}] } },
    ],
    ['members that are undefined, which are left out', { tenant: undefined, deep: { x: undefined } }, { deep: {} }],
    ['an object without prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ['1,024 bytes as JSON', { a: 'x'.repeat(1_016) }, { a: 'x'.repeat(1_016) }],
  ])('%s', async (_name, answer, claims) => {
    expect(await ask(answer)).toEqual({ claims, entries: [] })
  })

  test.each([...reserved, '__proto__'])('never the reserved claim %s', async (name) => {
    const { claims, entries } = await ask(
      Object.fromEntries([
        ['fine', 1],
        [name, 'a secret value'],
      ]),
    )
    expect(claims).toBe('SERVICE_UNAVAILABLE')
    expect(entries).toMatchObject([{ level: 'error', fields: { claim: name, reason: 'the name is reserved' } }])
    expect(JSON.stringify(entries)).not.toContain('secret')
  })

  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  test.each([
    ['a date', { since: new Date(0) }, 'since'],
    ['a number that JSON lacks', { n: Number.NaN }, 'n'],
    ['a bigint', { n: 1n }, 'n'],
    ['a function', { f: () => 1 }, 'f'],
    ['a map', { m: new Map() }, 'm'],
    ['undefined in a list', { l: [undefined] }, 'l'],
    ['something deep within', { ok: 1, d: { e: [{ f: new Set() }] } }, 'd'],
    ['what contains itself', { circle }, 'circle'],
    ['1,025 bytes as JSON: the largest is named', { small: 1, a: 'x'.repeat(1_007) }, 'a'],
    ['1,025 bytes of two-byte characters', { a: `${'é'.repeat(508)}x` }, 'a'],
    ['null', null, null],
    ['a list', ['editor'], null],
    ['a text', 'editor', null],
    ['an object of a class', new (class Claims {})(), null],
  ])('never %s: 503, with the name of the claim in the log', async (_name, answer, claim) => {
    const { claims, entries } = await ask(answer)
    expect(claims).toBe('SERVICE_UNAVAILABLE')
    expect(entries).toEqual([expect.objectContaining({ level: 'error', fields: { claim, reason: expect.any(String) } })])
  })

  test('what it throws is 503, and its message, which may hold a value, is not logged', async () => {
    const logger = logTap()
    const hook = () => {
      throw new Error('a secret value')
    }
    await expect(askForClaims({ accessTokenClaims: hook, logger }, toPublicUser(userRecord()), ['pwd'])).rejects.toMatchObject({
      status: 503,
    })
    expect(logger.entries.map(({ level }) => level)).toEqual(['error'])
    expect(logger.text()).not.toContain('secret')
    expect(logger.text()).toContain('troubleshooting.md#claims-of-your-own-fail')
  })

  test('after five seconds without an answer it is 503', async () => {
    vi.useFakeTimers()
    try {
      const logger = logTap()
      const asked = askForClaims({ accessTokenClaims: () => new Promise(() => undefined), logger }, toPublicUser(userRecord()), ['pwd'])
      const settled = vi.fn()
      asked.catch(settled)
      await vi.advanceTimersByTimeAsync(4_999)
      expect(settled).not.toHaveBeenCalled()
      await vi.advanceTimersByTimeAsync(1)
      expect(settled).toHaveBeenCalledWith(expect.objectContaining({ code: 'SERVICE_UNAVAILABLE' }))
      expect(logger.entries[0]?.fields).toMatchObject({ error: { code: 'TIMEOUT' } })
    } finally {
      vi.useRealTimers()
    }
  })

  test('it is shown the public user, without the password hash, and how the session began', async () => {
    const asked: unknown[] = []
    const user = userRecord({ hashedPassword: 'a hash', totpSecret: 'a seed' })
    await askForClaims({ accessTokenClaims: (...given) => void asked.push(given), logger: logTap() }, toPublicUser(user), ['pwd', 'otp'])
    expect(asked).toEqual([[expect.objectContaining({ id: user.id, email: user.email, mfaEnabled: false }), { amr: ['pwd', 'otp'] }]])
    expect(JSON.stringify(asked)).not.toMatch(/hash|seed/)
  })
})

describe('in a token', () => {
  const host = (accessTokenClaims?: AccessTokenClaimsHook) =>
    start({
      options: accessTokenClaims ? { accessTokenClaims } : {},
      host: (app, { guards }) => app.get('/me', guards.requireAuth(), (req, res) => void res.json(getAuth(req))),
    })

  test('they stand at the top level, and getAuth() returns them', async () => {
    const mounted = await host(() => ({ roles: ['editor'], tenant: { id: 7 } }))
    const { token, userId } = await signedIn(mounted)
    const { body } = await mounted.browser().get('/me').set(bearerOf({ token }))
    expect(body).toMatchObject({ sub: userId, typ: 'access', amr: ['pwd'], roles: ['editor'], tenant: { id: 7 } })
  })

  test('a token from before the option is as good as ever', async () => {
    const { token } = await signedIn(await host())
    const now = await host(() => ({ roles: ['editor'] }))
    const { status, body } = await now.browser().get('/me').set(bearerOf({ token }))
    expect([status, body.roles]).toEqual([200, undefined])
  })

  test('they are frozen throughout, because a remembered token shares them', async () => {
    let seen: { roles: string[]; tenant: object } | undefined
    const mounted = await start({
      options: { accessTokenClaims: () => ({ roles: ['editor'], tenant: { id: 7 } }) },
      host: (app, { guards }) =>
        app.get('/me', guards.requireAuth(), (req, res) => {
          seen = getAuth<{ roles: string[]; tenant: object }>(req)
          res.json({})
        }),
    })
    await mounted
      .browser()
      .get('/me')
      .set(bearerOf(await signedIn(mounted)))
    expect([seen, seen?.roles, seen?.tenant].map((part) => Object.isFrozen(part))).toEqual([true, true, true])
  })

  test('a reserved name that is not ours is not returned, and no claim reaches a prototype', async () => {
    const mounted = await host()
    const secret = deriveKeys(testSecret).access[0].export()
    const claims = {
      ...claimsAt(mounted.clock.now()),
      scope: 'all',
      act: { sub: 'x' },
      roles: ['a'],
      ...JSON.parse('{"__proto__":{"x":1}}'),
    }
    const token = signedWithSecret(secret, claims, { alg: 'HS256', typ: 'JWT' })
    const { status, body } = await mounted.browser().get('/me').set(bearerOf({ token }))
    expect([status, Object.keys(body).sort()]).toEqual([200, ['amr', 'email', 'exp', 'iat', 'roles', 'sub', 'typ']])
  })

  test('the refusal of a login is told to observers, and logged once', async () => {
    const mounted = await host(() => ({ sub: 'somebody else' }))
    const told: unknown[] = []
    mounted.auth.events.on('login.failed', ({ reason }) => told.push(reason))
    await mounted.auth.service.signUp({ email: 'ana@example.test', password }).then(([{ id }]) => mounted.auth.service.activateUser(id))
    const { status, body, headers } = await post(mounted, '/login', { email: 'ana@example.test', password })
    expect([status, body.code, body.details, headers['retry-after']]).toEqual([503, 'SERVICE_UNAVAILABLE', {}, '1'])
    expect(told).toEqual(['SERVICE_UNAVAILABLE'])
    expect(mounted.logs.entries.filter(({ level }) => level === 'error')).toHaveLength(1)
  })
})
