import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { type Mounted, signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { link, member } from './link-steps'
import { newPerson } from './redirect-steps'

const start = appPerTest()
const two = { providers: { corp: {}, acme: {} }, settings: { accessTokenTtlSeconds: 3_600 } }

const claimsOf = (token: unknown) => JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString())

/** What a route of the account says that needs a fresh session. */
async function tryLinking(host: Mounted, token: string) {
  const { status, body } = await host.browser().post('/auth/oauth/acme/link').set('Authorization', `Bearer ${token}`).send({})
  return status === 200 ? 'fresh' : body.code
}

describe('an identity that was linked to an existing account', () => {
  test('signs in for the first 24 hours, and its session counts as not fresh; afterwards it is as good as any', async () => {
    const host = await start(two)
    const ana = await member(host)
    host.clock.advance(1)
    const profile = newPerson()
    await link(host, ana, { profile })
    const signInByIt = async () => (await signIn(host, host.browser(), { key: 'acme', profile })).body

    host.clock.advance(86_399)
    const young = await signInByIt()
    const row = await host
      .knex('auth_sessions')
      .where({ id: claimsOf(young.access_token).sid })
      .first()
    expect([young.user_id, claimsOf(young.access_token).auth_time, row.authenticated_at]).toEqual([ana.userId, 0, null])
    expect(await tryLinking(host, young.access_token)).toBe('REAUTHENTICATION_REQUIRED')
    const refreshed = await host.browser().post('/auth/refresh').send({ refresh_token: young.refresh_token })
    expect(claimsOf(refreshed.body.access_token).auth_time).toBe(0)

    host.clock.advance(1)
    const old = await signInByIt()
    expect(claimsOf(old.access_token).auth_time).toBe(Math.floor(host.clock.now().getTime() / 1000))
    expect(await tryLinking(host, old.access_token)).toBe('fresh')
  })

  test('the identity that the account was made with is old at once', async () => {
    const host = await start(two)
    const ana = await member(host)
    expect(claimsOf(ana.token).auth_time).toBe(Math.floor(host.clock.now().getTime() / 1000))
    expect(await tryLinking(host, ana.token)).toBe('fresh')
    const again = await signIn(host, host.browser(), { profile: ana.profile })
    expect(await tryLinking(host, again.body.access_token)).toBe('fresh')
  })

  test('it stays old when its owner verifies the address that the provider said nothing of, and when she changes the address', async () => {
    const host = await start(two)
    const ana = await member(host, { profile: newPerson({ email_verified: null }) })
    const verification = await host.auth.service.requestEmailVerification(ana.userId)
    const asAna = { Authorization: `Bearer ${ana.token}` }
    await host.browser().post('/auth/email-verify/confirm').set(asAna).send({ token: verification?.token }).expect(200)
    host.clock.advance(3_600)
    const again = await signIn(host, host.browser(), { profile: ana.profile })
    expect(await tryLinking(host, again.body.access_token)).toBe('fresh')
    const asNow = { Authorization: `Bearer ${again.body.access_token}` }
    const asked = await host.browser().post('/auth/email-change/request').set(asNow).send({ new_email: 'moved@example.test' })
    const token = String(asked.body.confirm_url).split('/').at(-1)
    await host.browser().post('/auth/email-change/confirm').set(asNow).send({ token }).expect(200)
    host.clock.advance(3_600)
    const moved = await signIn(host, host.browser(), { profile: ana.profile })
    expect(await tryLinking(host, moved.body.access_token)).toBe('fresh')
  })

  test('so it is where the users table keeps whole seconds', async () => {
    const host = await start(two)
    host.clock.advance(0.7)
    const ana = await member(host)
    const second = Math.floor(host.clock.now().getTime() / 1000) * 1000
    await host.knex('auth_users').where({ id: ana.userId }).update({ created_at: second })
    const again = await signIn(host, host.browser(), { profile: ana.profile })
    expect(await tryLinking(host, again.body.access_token)).toBe('fresh')
  })

  test('an account that was made with a password was made with no identity, even in one instant', async () => {
    const host = await start({ ...two, settings: { ...two.settings, autoActivate: true } })
    const signup = await host
      .browser()
      .post('/auth/signup')
      .send({ email: 'ana@example.test', password: 'correct horse battery', name: 'Ana' })
    const profile = newPerson()
    const linked = await link(host, { browser: host.browser(), token: signup.body.access_token }, { profile })
    expect(linked.status, linked.text).toBe(200)
    const { access_token: token } = (await signIn(host, host.browser(), { key: 'acme', profile })).body
    expect([claimsOf(token).auth_time, await tryLinking(host, token)]).toEqual([0, 'REAUTHENTICATION_REQUIRED'])
  })

  test('without a table of sessions the tokens say the same', async () => {
    const { databases } = await import('../support/databases')
    const { mount } = await import('../support/app')
    const opened = await (await databases())[0]?.open({ memory: true })
    if (!opened) throw new Error('no database')
    const host = await mount({ knex: opened.knex, ...two, options: { store: createKnexStore({ knex: opened.knex, sessions: false }) } })
    const ana = await member(host)
    host.clock.advance(1)
    const profile = newPerson()
    await link(host, ana, { profile })
    const young = (await signIn(host, host.browser(), { key: 'acme', profile })).body
    const refreshed = await host.browser().post('/auth/refresh').send({ refresh_token: young.refresh_token })
    expect([claimsOf(young.access_token).auth_time, claimsOf(refreshed.body.access_token).auth_time]).toEqual([0, 0])
    await host.close()
    await opened.close()
  })
})

test('X22: a provider’s word on an address links into a proven account, and its session is not fresh', async () => {
  const host = await start({ ...two, settings: { ...two.settings, oauthLinkByVerifiedEmail: true } })
  const ana = await member(host)
  host.clock.advance(86_400)
  const { body } = await signIn(host, host.browser(), { key: 'acme', profile: newPerson({ email: ana.email }) })
  expect([body.user_id, claimsOf(body.access_token).auth_time]).toEqual([ana.userId, 0])
  expect(await tryLinking(host, body.access_token)).toBe('REAUTHENTICATION_REQUIRED')
})
