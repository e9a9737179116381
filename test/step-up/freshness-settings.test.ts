import express from 'express'
import jwt from 'jsonwebtoken'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { createGuards, createKnexStore } from '../../src'
import { bearerOf, type LocalHost, onLocal, otherPassword, password, post, resetLink, signedIn } from '../local/people'
import { ageFactor, challengeOf, enrolled, mfaSettings, outcome, verify } from '../mfa/people'
import { addIdentity } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { signIn, testSecret } from '../support/app'
import { databases } from '../support/databases'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start: begin } = onLocal(sqlite)
const start = (settings: object = {}, more: object = {}): Promise<LocalHost> =>
  begin({ settings: { ...mfaSettings, ...settings }, ...more })
const authTimeOf = (token: string) => (jwt.decode(token) as { auth_time: number }).auth_time
const nowOf = (host: LocalHost) => Math.floor(host.clock.now().getTime() / 1000)

describe('a login is as fresh as its oldest credential', () => {
  async function byIdentity(host: LocalHost, isYoungFactor: boolean) {
    const person = await enrolled(host, {}, { isYoung: isYoungFactor })
    const profile = newPerson()
    await addIdentity(host.knex, person.userId, { subject: profile.sub, createdAt: host.clock.now() })
    const { body } = await signIn(host, host.browser(), { profile })
    return (await verify(host, body.mfa_token, person.app.nextCode())).body
  }

  test('a password and a factor of today: the changes of the specification work right after the login (25.9.4)', async () => {
    const host = await start()
    const person = await enrolled(host, {}, { isYoung: true })
    const { body } = await verify(host, await challengeOf(host, person), person.app.nextCode())
    expect(authTimeOf(body.access_token)).toBe(nowOf(host))
    host.clock.advance(30)
    const code = person.app.nextCode()
    expect(outcome(await post(host, '/mfa/disable', { password, code }, bearerOf({ token: body.access_token })))).toBe(204)
  })

  test('an identity of today and an old factor: fresh by the factor; with a factor of today, never fresh (25.9.4)', async () => {
    const host = await start()
    host.clock.advance(1)
    const fresh = await byIdentity(host, false)
    expect(authTimeOf(fresh.access_token)).toBe(nowOf(host))
    const young = await byIdentity(host, true)
    expect(authTimeOf(young.access_token)).toBe(0)
  })

  test('a reset link and a factor of today: fresh by the link (25.9.4)', async () => {
    const host = await start()
    const person = await enrolled(host, {}, { isYoung: true })
    const token = await resetLink(host, person.email)
    const reset = await post(host, '/password-reset/confirm', { token, new_password: otherPassword })
    const { body } = await verify(host, reset.body.mfa_token, person.app.nextCode())
    expect(authTimeOf(body.access_token)).toBe(nowOf(host))
  })
})

describe('freshSessionSeconds and youngCredentialSeconds', () => {
  test('freshSessionSeconds 0 lets every live session change the account, and requireFresh() passes it; an ended session and an explicit maxAgeSeconds still count (25.9.5)', async () => {
    const host = await start(
      { freshSessionSeconds: 0, accessTokenTtlSeconds: 86_400 },
      {
        host: (app: express.Express, auth: LocalHost['auth']) => {
          app.get('/any', auth.guards.requireFresh(), (_req, res) => void res.sendStatus(204))
          app.get('/young', auth.guards.requireFresh({ maxAgeSeconds: 300 }), (_req, res) => void res.sendStatus(204))
        },
      },
    )
    const member = await signedIn(host)
    await host.knex('auth_sessions').update({ authenticated_at: null })
    host.clock.advance(80_000)
    const get = (path: string) => supertest(host.app).get(path).set(bearerOf(member))
    expect([(await get('/any')).status, (await get('/young')).status]).toEqual([204, 403])
    expect((await post(host, '/mfa/enroll', {}, bearerOf(member))).status).toBe(200)
    await post(host, '/logout', { refresh_token: member.refreshToken })
    expect([(await get('/any')).status, outcome(await post(host, '/mfa/enroll', {}, bearerOf(member)))]).toEqual([401, 'INVALID_TOKEN'])
  })

  test('youngCredentialSeconds says how long a new factor confirms nothing; with 0 its code changes the password at once (25.9.5)', async () => {
    for (const youngCredentialSeconds of [0, 60]) {
      const host = await start({ youngCredentialSeconds })
      const person = await enrolled(host, {}, { isYoung: true })
      const change = () =>
        post(host, '/password-change/mfa', { code: person.app.nextCode(), new_password: otherPassword }, bearerOf(person))
      if (youngCredentialSeconds === 60) {
        const usableAt = new Date(host.clock.now().getTime() + 60_000).toISOString() // `change` advances the clock
        const refused = await change()
        expect([outcome(refused), refused.body.details.usable_at]).toEqual(['MFA_FACTOR_TOO_NEW', usableAt])
        host.clock.advance(60)
      }
      expect(outcome(await change())).toBe(204)
    }
  })

  test('createGuards() takes both settings: a session of before the factor passes with youngCredentialSeconds 0 (25.9.5)', async () => {
    const host = await start()
    const person = await enrolled(host, {}, { isYoung: true })
    const ask = (settings: object) => {
      const store = createKnexStore({ knex: host.knex })
      const guards = createGuards({ settings: { jwtSecret: testSecret, ...settings }, store, now: host.clock.now })
      const app = express().get('/', guards.requireFresh(), (_req, res) => void res.sendStatus(204))
      return supertest(app).get('/').set(bearerOf(person))
    }
    expect((await ask({})).status).toBe(403)
    expect((await ask({ youngCredentialSeconds: 0 })).status).toBe(204)
    expect((await ask({ freshSessionSeconds: 0 })).status).toBe(204)
    await ageFactor(host, person)
    expect((await ask({})).status).toBe(204)
  })

  test.each([
    ['production', 1],
    ['test', 0],
  ] as const)('freshSessionSeconds 0 is a warning at boot in %s: %i lines (25.9.5)', async (environment, lines) => {
    const host = await start({ freshSessionSeconds: 0 }, { options: { environment } })
    expect(host.logs.entries.filter(({ message }) => message.startsWith('doorward: freshSessionSeconds is 0'))).toHaveLength(lines)
  })
})
