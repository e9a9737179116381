import { describe, expect, test } from 'vitest'
import { createKnexStore, memoryCounters } from '../../src'
import { act, adminOn } from '../admin/people'
import { bearerOf, type LocalHost, newAddress, password, post, signedIn } from '../local/people'
import { addUser } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { askDeletion, codeOf, immediate, isGone, leave, onDeletion, restore, restoreTokenOf } from './people'

describe.each(await databases())('attacks on the deletion on $name', (database) => {
  const { start, opened } = onDeletion(database)

  test('a token of a deleted account opens nothing at the guards, also after a new account got its id', async () => {
    const host = await start({
      settings: immediate,
      host: (app, { guards }) => {
        app.get('/user', guards.requireUser(), (_req, res) => void res.send('in'))
        app.get('/live', guards.requireLiveSession(), (_req, res) => void res.send('in'))
        app.get('/admin', guards.requireAdmin(), (_req, res) => void res.send('in'))
      },
    })
    await adminOn(host)
    const person = await signedIn(host, { isAdmin: true })
    const guarded = ['/user', '/live', '/admin', '/auth/me', '/auth/sessions']
    const answers = async () => {
      const found: unknown[] = []
      for (const path of guarded) found.push((await host.browser().get(path).set(bearerOf(person))).status)
      return found
    }
    expect(await answers()).toEqual([200, 200, 200, 200, 200])
    expect((await askDeletion(host, person)).status).toBe(204)
    expect(await answers()).toEqual([401, 401, 401, 401, 401])
    host.clock.advance(1)
    const next = await addUser(host.knex, { createdAt: host.clock.now(), isAdmin: true })
    await host.knex('auth_users').where({ id: next.id }).update({ id: person.userId })
    expect(await answers()).toEqual([401, 401, 401, 401, 401])
    const refused = await host.browser().get('/user').set(bearerOf(person))
    expect(refused.body.code).toBe('INVALID_TOKEN')
    await host.knex('auth_users').where({ id: person.userId }).delete()
  })

  test('without a sessions table, whoami tells the token of a deleted account nothing of the account that got its id', async () => {
    const host = await start({ settings: immediate, options: { store: createKnexStore({ knex: opened().knex, sessions: false }) } })
    const person = await signedIn(host)
    const whoami = async () => (await host.browser().get('/auth/whoami').set(bearerOf(person))).body.user
    expect(await whoami()).toMatchObject({ email: person.email })
    expect((await askDeletion(host, person)).status).toBe(204)
    host.clock.advance(1)
    const next = await addUser(host.knex, { createdAt: host.clock.now() })
    await host.knex('auth_users').where({ id: next.id }).update({ id: person.userId })
    expect(await whoami()).toBeNull()
    await host.knex('auth_users').where({ id: person.userId }).delete()
  })

  test('a token of the same second as the new account passes: it may be its own', async () => {
    const host = await start({ host: (app, { guards }) => void app.get('/user', guards.requireUser(), (_req, res) => void res.send('in')) })
    host.clock.advance(0.9)
    const person = await signedIn(host, { createdAt: host.clock.now() })
    expect((await host.browser().get('/user').set(bearerOf(person))).status).toBe(200)
  })

  test('asked before a ban, neither token opens the account; nor does a token of another account', async () => {
    const host = await start()
    const [admin, person, other] = [await adminOn(host), await signedIn(host), await signedIn(host)]
    const tokens = [await leave(host, person), await restoreTokenOf(host, person)]
    await act(host, admin, person.userId, 'deactivate').expect(204)
    for (const token of tokens) expect(codeOf(await restore(host, token))).toEqual([401, 'INVALID_TOKEN'])
    expect(codeOf(await post(host, '/login', { email: person.email, password }))).toEqual([401, 'UNAUTHORIZED'])
    for (const token of [other.token, other.refreshToken, '', 'x'.repeat(2_000)])
      expect((await restore(host, token)).status).toBeGreaterThanOrEqual(401)
    expect(await isGone(host, other.userId)).toBe(false)
  })

  test('sign up with a strange address, then ask for soft deletion: the row is gone, and the owner can sign up', async () => {
    const host = await start({ settings: { autoActivate: true } })
    const email = newAddress()
    const { body } = await post(host, '/signup', { email, password })
    expect((await askDeletion(host, { token: body.access_token })).status).toBe(204)
    expect(await host.knex('auth_users').where({ email })).toEqual([])
    expect((await post(host, '/signup', { email, password: 'the owner chooses this one' })).status).toBe(201)
  })

  test('an address that is verified during the request is not deleted at once', async () => {
    let meanwhile = async () => undefined as unknown
    const counters = memoryCounters({})
    const increment: typeof counters.increment = async (...given) => {
      if (given[0].includes('change')) await meanwhile()
      return counters.increment(...given)
    }
    const host = await start({ options: { throttle: { counters: { ...counters, increment } } } })
    const person = await signedIn(host, { emailVerifiedAt: null })
    meanwhile = () => host.knex('auth_users').where({ id: person.userId }).update({ email_verified_at: host.clock.now() })
    expect(codeOf(await askDeletion(host, person))).toEqual([409, 'CONFLICT'])
    expect(await isGone(host, person.userId)).toBe(false)
  })

  test('a deletion and four logins at once: no session row without an account, and none of a closed one lives', async () => {
    const hosts = { soft: await start(), immediate: await start({ settings: immediate }) }
    for (const host of Object.values(hosts)) {
      const person = await signedIn(host)
      const logins = Array.from({ length: 4 }, () => post(host, '/login', { email: person.email, password }))
      const [asked, ...answers] = await Promise.all([askDeletion(host, person), ...logins])
      expect([202, 204]).toContain(asked?.status)
      for (const { status } of answers) expect([200, 401, 403]).toContain(status)
      await expectNoOrphans(host, person.userId)
    }
  })

  async function expectNoOrphans({ knex }: LocalHost, userId: string): Promise<void> {
    const user = await createKnexStore({ knex }).users.find(userId)
    const sessions = await knex('auth_sessions').where({ user_id: userId, revoked_at: null })
    expect(sessions).toEqual([])
    if (!user) expect(await opened().knex('auth_user_tokens').where({ user_id: userId })).toEqual([])
  }

  test('ten requests at once close the account once and mail once', async () => {
    const host = await start()
    const person = await signedIn(host)
    const asked: number[] = []
    host.auth.events.on('account.deletion_requested', () => void asked.push(1))
    const answers = await Promise.all(Array.from({ length: 10 }, () => askDeletion(host, person)))
    expect(answers.filter(({ status }) => status === 202).length).toBe(1)
    await host.auth.drain()
    expect([asked.length, host.mails.mails.filter(({ to }) => to === person.email).length]).toEqual([1, 1])
  })

  test('ten closings and returns a day, then 429; the account stays', async () => {
    const host = await start()
    const person = await signedIn(host)
    for (let count = 0; count < 10; count += 1) {
      const { body } = await post(host, '/login', { email: person.email, password })
      await restore(host, await leave(host, { ...person, token: body.access_token })).expect(200)
      host.clock.advance(1)
    }
    const { body } = await post(host, '/login', { email: person.email, password })
    expect(codeOf(await askDeletion(host, { token: body.access_token }))).toEqual([429, 'TOO_MANY_REQUESTS'])
    expect((await post(host, '/login', { email: person.email, password })).status).toBe(200)
  })

  test('another site cannot delete an account by its cookie', async () => {
    const host = await start({ settings: { ...immediate, tokenDelivery: 'cookie' } })
    const person = await signedIn(host)
    const browser = host.browser()
    await browser.post('/auth/login').send({ email: person.email, password }).expect(200)
    const foreign = browser.post('/auth/account/delete').set({ Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }).send({})
    expect(codeOf(await foreign)).toEqual([403, 'CSRF_VALIDATION_FAILED'])
    expect(await isGone(host, person.userId)).toBe(false)
  })
})
