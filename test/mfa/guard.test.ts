import express from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { createGuards } from '../../src'
import { amrOf, bearerOf, isAlive, newAddress, password, post } from '../local/people'
import { addUser } from '../social/accounts-at-hand'
import { testSecret } from '../support/app'
import { databases } from '../support/databases'
import { authenticator } from './authenticator'
import { enrolled, onMfa } from './people'

describe('requireMfa', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  test('R-099: sessions with [pwd], [ext], [email] or two of them are 403 MFA_REQUIRED; those with otp go through', async () => {
    const host = await start({
      host: (app, auth) => app.get('/safe', auth.guards.requireMfa(), (_req, res) => void res.json({ reached: true })),
    })
    const { service } = host.auth
    const sessionOf = async (amr: ('pwd' | 'ext' | 'email')[]) => {
      const user = await addUser(host.knex, { email: newAddress(), hashedPassword: await host.hasher.hash(password) })
      const login = await service.logIn({ email: user.email, password })
      const { secret } = await service.enrollTotp(user.id)
      const confirmed = await service.confirmTotp({ userId: user.id, amr, code: authenticator(secret, host.clock).code() })
      const at = (result: typeof login) => (result.kind === 'session' ? result.accessToken : '')
      return { first: at(login), both: at(confirmed) }
    }
    const link = await service.requestPasswordReset((await addUser(host.knex, { email: newAddress() })).email)
    const reset = await service.resetPassword({ token: String(link?.token), newPassword: password })
    const profile = { provider: 'corp', subject: 'somebody', email: newAddress(), emailVerified: true, name: null, picture: null, raw: {} }
    const external = await service.logInWithIdentity(profile)
    const tokens = [reset, external].map((result) => (result.kind === 'session' ? result.accessToken : ''))
    const get = (token: string) => host.browser().get('/safe').set(bearerOf({ token }))
    const pwd = await sessionOf(['pwd'])

    const seen = await Promise.all([pwd.first, ...tokens].map(async (token) => [amrOf(token), (await get(token)).status]))
    expect(seen).toEqual([
      [['pwd'], 403],
      [['email'], 403],
      [['ext'], 403],
    ])
    expect((await get(pwd.first)).body).toMatchObject({ code: 'MFA_REQUIRED', details: {} })
    const twice = await sessionOf(['pwd', 'ext', 'email'])
    for (const token of [pwd.both, twice.both]) expect((await get(token)).body).toEqual({ reached: true })
    expect((await host.browser().get('/safe')).status).toBe(401)
    expect((await get('x.y.z')).body.code).toBe('INVALID_TOKEN')
    expect((await host.knex('auth_users').where({ email: profile.email })).length).toBe(1)
  })

  test('without the router it decides the same, from the token alone', async () => {
    const host = await start()
    const person = await enrolled(host)
    const guards = createGuards({ settings: { jwtSecret: testSecret }, now: host.clock.now })
    const api = express().get('/safe', guards.requireMfa(), (_req, res) => void res.json({}))
    const off = await start({ settings: { mfaEnabled: false } })
    const plain = await post(off, '/login', { email: person.email, password })

    expect((await supertest(api).get('/safe').set(bearerOf(person))).status).toBe(200)
    expect(
      (
        await supertest(api)
          .get('/safe')
          .set(bearerOf({ token: plain.body.access_token }))
      ).status,
    ).toBe(403)
    expect(await isAlive(host, person.refreshToken)).toBe(true)
  })
})
