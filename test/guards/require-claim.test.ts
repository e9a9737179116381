import express, { type RequestHandler } from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { ConfigurationError, createGuards, type Guards, getAuth, getUser } from '../../src'
import { bearerOf, signedIn } from '../local/people'
import { testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { logTap } from '../support/log-tap'
import { recordQueries } from '../support/record-queries'

const start = appPerTest()
const claims = { roles: ['editor', 'reader'], tenant: 'acme', level: 3, isTrial: false, nothing: null, list: ['x'] }

/** One person's answers to guards of the router: status and code. */
async function startAsking() {
  const host = await start({ options: { accessTokenClaims: () => claims } })
  const { token } = await signedIn(host)
  const ask = async (...guards: RequestHandler[]) => {
    const app = express().get('/', ...guards, (req, res) => void res.json({ sub: getAuth(req).sub }))
    const { status, body } = await supertest(app).get('/').set(bearerOf({ token }))
    return body.code ?? status
  }
  return { host, token, ask, guards: host.auth.guards }
}

const unknownClaim = (guards: Guards, expected: unknown) => guards.requireClaim('tenant', expected as string) // a host without types

describe('requireClaim', () => {
  test.each([
    ['tenant', 'acme', 200],
    ['tenant', 'Acme', 'FORBIDDEN'],
    ['level', 3, 200],
    ['level', '3', 'FORBIDDEN'],
    ['isTrial', false, 200],
    ['isTrial', true, 'FORBIDDEN'],
    ['nothing', null, 200],
    ['missing', null, 'FORBIDDEN'],
    ['constructor', 'x', 'FORBIDDEN'],
    ['list', 'x', 'FORBIDDEN'],
  ] as const)('%s must be %s by ===: %s', async (name, value, expected) => {
    const { ask, guards } = await startAsking()
    expect(await ask(guards.requireClaim(name, value))).toBe(expected)
  })

  test('a function of the value decides, by true alone; a claim that is not there is refused without asking', async () => {
    const { ask, guards, host } = await startAsking()
    const asked: unknown[] = []
    const isLevel = (least: number) => (value: unknown) => {
      asked.push(value)
      return Number(value) >= least
    }
    expect([await ask(guards.requireClaim('level', isLevel(3))), await ask(guards.requireClaim('level', isLevel(4)))]).toEqual([
      200,
      'FORBIDDEN',
    ])
    expect(await ask(guards.requireClaim('missing', isLevel(0)))).toBe('FORBIDDEN')
    expect(asked).toEqual([3, 3])
    expect(host.logs.entries.filter(({ level }) => level === 'error')).toEqual([])
  })

  test.each([
    ['throws', () => JSON.parse('{')],
    ['promises', async () => true],
    ['rejects', () => Promise.reject(new Error('acme'))],
    ['returns something else', () => 'yes'],
  ])('a function that %s refuses, and is logged without the value', async (_name, accepts) => {
    const { ask, guards, host } = await startAsking()
    expect(await ask(guards.requireClaim('tenant', accepts as () => boolean))).toBe('FORBIDDEN')
    const entries = host.logs.entries.filter(({ level }) => level === 'error')
    expect(entries).toMatchObject([{ fields: { claim: 'tenant' } }])
    expect(JSON.stringify(entries)).not.toContain('acme')
  })

  test('what is neither a scalar nor a function is refused when the guard is made', async () => {
    const { guards } = await startAsking()
    for (const expected of [undefined, ['acme'], {}, Symbol('x')]) expect(() => unknownClaim(guards, expected)).toThrow(ConfigurationError)
    expect(() => guards.requireClaim('', 'x')).toThrow(/needs the name of a claim/)
  })

  test('without a token, and with a bad one, it refuses as requireAuth does', async () => {
    const { guards } = await startAsking()
    const app = express().get('/', guards.requireClaim('tenant', 'acme'), (_req, res) => void res.json({}))
    const [none, bad] = [
      await supertest(app).get('/'),
      await supertest(app)
        .get('/')
        .set(bearerOf({ token: 'a.b.c' })),
    ]
    expect([none.body.code, bad.body.code]).toEqual(['UNAUTHORIZED', 'INVALID_TOKEN'])
    expect(String(none.headers['www-authenticate'])).toBe('Bearer')
  })
})

describe('requireRole', () => {
  test('lets through who has one of the roles', async () => {
    const { ask, guards } = await startAsking()
    expect([
      await ask(guards.requireRole('editor')),
      await ask(guards.requireRole('admin', 'reader')),
      await ask(guards.requireRole('admin')),
      await ask(guards.requireRole('Editor')),
    ]).toEqual([200, 200, 'FORBIDDEN', 'FORBIDDEN'])
  })

  test.each([
    ['none', {}],
    ['a text', { roles: 'editor' }],
    ['an object', { roles: { editor: true, includes: 'editor' } }],
  ])('roles that are %s refuse', async (_name, given) => {
    const host = await start({ options: { accessTokenClaims: () => given } })
    const app = express().get('/', host.auth.guards.requireRole('editor'), (_req, res) => void res.json({}))
    expect(
      (
        await supertest(app)
          .get('/')
          .set(bearerOf(await signedIn(host)))
      ).body.code,
    ).toBe('FORBIDDEN')
  })

  test('without roles, or with one that is no text, it throws when it is made', async () => {
    const { guards } = await startAsking()
    const requireRole = guards.requireRole as (...roles: unknown[]) => RequestHandler // a host without types
    for (const roles of [[], [undefined], [''], ['editor', 7]])
      expect(() => requireRole(...roles)).toThrow(/requireRole\(\) needs at least one role/)
  })
})

test('neither asks the database, nor the host', async () => {
  const { ask, guards, host } = await startAsking()
  const statements = recordQueries(host.knex)
  await ask(guards.requireRole('editor'), guards.requireClaim('tenant', 'acme'))
  expect(statements.stop()).toEqual([])
})

test('behind requireUser() the user that was loaded stays', async () => {
  const { host, token, guards } = await startAsking()
  const app = express().get('/', guards.requireUser(), guards.requireRole('editor'), guards.requireAuth(), (req, res) => {
    res.json({ email: getUser(req).email, sub: getAuth(req).sub, id: getUser(req).id })
  })
  const { body } = await supertest(app).get('/').set(bearerOf({ token }))
  expect(body.email).toMatch(/@example\.test$/)
  expect([body.id, host.logs.entries.filter(({ level }) => level === 'error')]).toEqual([body.sub, []])
})

test('createGuards() checks them on the tokens of the router', async () => {
  const { host, ask } = await startAsking()
  const guards = createGuards({ settings: { jwtSecret: testSecret }, now: host.clock.now, logger: logTap() })
  expect([await ask(guards.requireRole('editor')), await ask(guards.requireClaim('tenant', 'other'))]).toEqual([200, 'FORBIDDEN'])
})
