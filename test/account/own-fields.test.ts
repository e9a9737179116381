import { beforeAll, describe, expect, test } from 'vitest'
import { createKnexStore, getUser } from '../../src'
import { newAddress, onLocal, password, post } from '../local/people'
import { newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import { linkTemplates } from '../support/mailbox'
import { recordQueries } from '../support/record-queries'
import { createMembers, memberOptions, members } from './members'

const signup = { password, firstName: 'Ana', wantsNews: true, terms: true }

describe.each(await databases())('fields of the host, on $name', (database) => {
  const { start, opened } = onLocal(database)
  beforeAll(() => createMembers(opened().knex))

  async function startMembers(changes: Parameters<typeof memberOptions>[1] = {}) {
    return start({ settings: { autoActivate: true, ...linkTemplates }, options: memberOptions(opened().knex, changes) })
  }
  type Host = Awaited<ReturnType<typeof startMembers>>

  async function join(host: Host, body: object = {}) {
    const email = newAddress()
    const answer = await post(host, '/signup', { email, ...signup, ...body })
    expect(answer.status, answer.text).toBe(201)
    const row = await host.knex('members').where({ email }).first()
    return { email, id: String(row.id), row, bearer: { Authorization: `Bearer ${answer.body.access_token}` } }
  }
  const me = async (host: Host, bearer: Record<string, string>) => host.browser().get(`${host.prefix}/me`).set(bearer)
  const change = (host: Host, bearer: Record<string, string>, body: object) =>
    host.browser().patch(`${host.prefix}/me`).set(bearer).send(body)
  const presented = { firstName: 'Ana', phone: null, wantsNews: true, plan: 'free' }

  test('the check of the tables finds no error in a role column, in fields, or in what insertDefaults fills', async () => {
    await expect((await startMembers()).auth.ready()).resolves.toBeUndefined()
  })

  test('a signup writes the fields with its one INSERT, and the answers show all but the private ones', async () => {
    const host = await startMembers()
    const queries = recordQueries(host.knex)
    const { id, row, bearer } = await join(host)

    expect(queries.stop().filter((sql) => /^insert into .members/i.test(sql))).toHaveLength(1)
    expect([row.first_name, row.plan, row.stripe_id, row.role]).toEqual(['Ana', 'free', 'cus_secret', 'member'])
    const { body } = await me(host, bearer)
    expect([body.fields, body.is_admin]).toEqual([presented, false])
    expect((await host.auth.service.findUser(id))?.fields).toEqual({ ...presented, stripeId: 'cus_secret' })
  })

  test('a value that no column can hold is refused alike for a new and for a taken address', async () => {
    const knex = opened().knex
    const host = await start({ options: memberOptions(knex) })
    const { email } = await join(await startMembers())
    for (const address of [email, newAddress()]) {
      const answer = await post(host, '/signup', { email: address, ...signup, firstName: '\ud800' })
      expect([answer.status, answer.body.details]).toEqual([422, { errors: [{ path: 'firstName', rule: 'unstorable' }] }])
    }
  })

  test('a signup without a required field, or with one that the schema refuses, is 422', async () => {
    const host = await startMembers()
    const refusals: [body: object, path: string, rule: string][] = [
      [{ firstName: undefined }, 'firstName', 'any.required'],
      [{ phone: 'call me' }, 'phone', 'string.pattern.base'],
      [{ wantsNews: { toString: 1 } }, 'wantsNews', 'boolean.base'],
      [{ firstName: 'a\0b' }, 'firstName', 'unstorable'],
    ]
    for (const [body, path, rule] of refusals) {
      const email = newAddress()
      const answer = await post(host, '/signup', { email, ...signup, ...body })
      expect([answer.status, answer.body.details]).toEqual([422, { errors: [{ path, rule }] }])
      expect(await host.knex('members').where({ email })).toEqual([])
    }
  })

  test('what is read-only, ours or unknown is written by nobody who signs up, wherever in the body it stands', async () => {
    const host = await startMembers()
    const mass = { plan: 'pro', stripeId: 'x', role: 'admin', is_admin: true, isAdmin: true, id: 'x', hashed_password: 'x', stripe_id: 'x' }
    const { row, id } = await join(host, { ...mass, fields: mass })
    expect([row.plan, row.stripe_id, row.role, row.id]).toEqual(['free', 'cus_secret', 'member', id])
    expect(id).not.toBe('x')
    expect(row.hashed_password).not.toBe('x')
  })

  test('a field that equals the password is refused, and the password is written nowhere', async () => {
    const host = await startMembers()
    const refused = await post(host, '/signup', { email: newAddress(), ...signup, phone: null, firstName: password })
    expect([refused.status, refused.body.details]).toEqual([422, { errors: [{ path: 'firstName', rule: 'equals_password' }] }])
    expect(JSON.stringify(await host.knex('members').select('first_name'))).not.toContain(password)
  })

  test('PATCH /me changes what is named, and answers as GET /me does', async () => {
    const host = await startMembers()
    const { bearer, row } = await join(host)
    host.clock.advance(60)

    const answer = await change(host, bearer, { name: 'Ana Lima', fields: { firstName: 'Anna', phone: '+351' } })

    expect([answer.status, answer.body.name, answer.body.fields]).toEqual([
      200,
      'Ana Lima',
      { ...presented, firstName: 'Anna', phone: '+351' },
    ])
    expect(answer.body).toEqual((await me(host, bearer)).body)
    expect(answer.body.updated_at).not.toBe(row.updated_at)
    expect((await change(host, bearer, { name: '' })).body.name).toBeNull()
    expect((await change(host, bearer, { fields: { phone: null } })).body.fields.phone).toBeNull()
    expect((await change(host, bearer, {})).body.fields).toEqual({ ...presented, firstName: 'Anna' })
  })

  test('PATCH /me refuses fields that are read-only, private or unknown, and what the schema refuses of the sent ones', async () => {
    const host = await startMembers()
    const { bearer, id } = await join(host)
    const before = await host.knex('members').where({ id }).first()
    const names = ['plan', 'stripeId', 'is_admin', 'role', 'id', 'hashed_password', 'password', 'terms', 'constructor', '__proto__']
    for (const name of names) {
      const answer = await change(host, bearer, JSON.parse(`{"name":"X","fields":{"firstName":"Eve","${name}":"x"}}`))
      expect([name, answer.status, answer.body.details]).toEqual([name, 422, { errors: [{ path: `fields.${name}`, rule: 'any.unknown' }] }])
    }
    const refusals: [fields: object, path: string, rule: string][] = [
      [{ phone: 'call me' }, 'fields.phone', 'string.pattern.base'],
      [{ firstName: '' }, 'fields.firstName', 'string.empty'],
      [{ firstName: 'a\0b' }, 'fields.firstName', 'unstorable'],
      [{ firstName: { a: 1 } }, 'fields.firstName', 'string.base'],
    ]
    for (const [fields, path, rule] of refusals) {
      const answer = await change(host, bearer, { fields })
      expect([answer.status, answer.body.details]).toEqual([422, { errors: [{ path, rule }] }])
    }
    expect((await change(host, bearer, { name: 'x'.repeat(121) })).status).toBe(422)
    expect((await change(host, bearer, { fields: 'x' })).status).toBe(422)
    expect(await host.knex('members').where({ id }).first()).toEqual(before)
  })

  test('PATCH /me wants a person who is signed in and active, and has a rate limit of its own', async () => {
    const host = await startMembers({ throttle: { routes: { attempts: 2, windowSeconds: 60 } } })
    const { bearer, id } = await join(host)
    expect((await change(host, {}, { name: 'X' })).status).toBe(401)
    await host.auth.service.deactivate(id)
    const inactive = await change(host, bearer, { name: 'X' })
    expect([inactive.status, inactive.body.code]).toEqual([403, 'ACCOUNT_INACTIVE'])
    expect((await change(host, bearer, {})).body.code).toBe('TOO_MANY_REQUESTS')
  })

  test('by the access cookie, PATCH /me refuses another site', async () => {
    const knex = opened().knex
    const host = await start({ settings: { autoActivate: true, tokenDelivery: 'cookie' }, options: memberOptions(knex) })
    const browser = host.browser()
    await browser.post('/auth/signup').send({ email: newAddress(), ...signup })
    const from = (origin: string) =>
      browser
        .patch('/auth/me')
        .set({ Origin: origin, ...oldBrowser })
        .send({ name: 'X' })
    const refused = await from('https://evil.example')
    expect([refused.status, refused.body.code]).toEqual([403, 'CSRF_VALIDATION_FAILED'])
    expect((await from('https://app.example.test')).body.name).toBe('X')
  })

  test('a social login fills what has to be there by insertDefaults, which hears the profile', async () => {
    const host = await startMembers()
    const profile = newPerson({ name: 'Maria' })
    const { body } = await signIn(host, host.browser(), { profile })
    const answer = await me(host, { Authorization: `Bearer ${body.access_token}` })
    expect(answer.body.fields).toEqual({ firstName: 'Maria', phone: null, wantsNews: null, plan: 'free' })
    expect((await host.auth.service.findUser(answer.body.id))?.fields?.['stripeId']).toBe('cus_of_provider')
  })

  test('no response and no event holds a private field; the server has it', async () => {
    const host = await startMembers()
    const heard: object[] = []
    for (const event of ['signup', 'login'] as const) host.auth.events.on(event, (payload) => heard.push(payload))
    const seen: unknown[] = []
    host.app.get('/who', host.auth.guards.requireUser(), (req, res) => {
      seen.push(getUser(req).fields?.['stripeId'], host.auth.guards.getUser(req).fields?.['plan'])
      res.json({})
    })
    const { id, email, bearer } = await join(host)
    await host.knex('members').where({ id }).update({ role: 'admin' })
    const login = await post(host, '/login', { email, password })
    const read = (path: string) => host.browser().get(path).set(bearer)
    const answers = [login, await me(host, bearer), await change(host, bearer, { name: 'X' }), await read('/auth/admin/users')]
    answers.push(
      await read(`/auth/admin/users/${id}`),
      await host.browser().patch(`/auth/admin/users/${id}`).set(bearer).send({ name: 'Y' }),
    )
    answers.push(await read('/auth/openapi.json'))

    for (const { status, text } of answers) {
      expect(status, text).toBe(200)
      expect(text).not.toMatch(/cus_secret|stripe/i)
    }
    expect(answers[4]?.body.fields).toEqual(presented)
    await read('/who')
    expect(seen).toEqual(['cus_secret', 'free'])
    expect(JSON.stringify(heard)).not.toContain('cus_secret')
  })

  test('two signups at once make one account, with the fields of one of them', async () => {
    const host = await startMembers()
    const email = newAddress()
    const answers = await Promise.all(['Ana', 'Eve'].map((firstName) => post(host, '/signup', { email, ...signup, firstName })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
    const winner = answers[0]?.status === 201 ? 'Ana' : 'Eve'
    expect(await host.knex('members').where({ email }).select('first_name')).toEqual([{ first_name: winner }])
  })

  test('onSignup writes rows of the host in the same transaction, which a throw takes back', async () => {
    let fails = false
    const host = await startMembers({
      signup: {
        ...memberOptions(opened().knex).signup,
        async onSignup(user, _body, store, { trx, isRepeat }) {
          if (!trx || isRepeat) throw new Error('a transaction was expected')
          await trx('carts').insert({ owner: user.id })
          await store.users.update(user.id, { fields: { plan: 'trial' } })
          if (fails) throw new Error('no')
        },
      },
    })
    const { id, row } = await join(host)
    expect(await host.knex('carts').where({ owner: id })).toHaveLength(1)
    expect(row.plan).toBe('trial')

    fails = true
    const carts = await host.knex('carts').count({ n: '*' })
    const refused = await post(host, '/signup', { email: newAddress(), ...signup })
    expect(refused.status).toBe(500)
    expect(await host.knex('carts').count({ n: '*' })).toEqual(carts)
  })

  test("in the host's own transaction, onSignup gets that very transaction", async () => {
    const seen: unknown[] = []
    const onSignup = (_user: unknown, _body: unknown, _store: unknown, { trx }: { trx: unknown }) => void seen.push(trx)
    const host = await startMembers({ signup: { ...memberOptions(opened().knex).signup, onSignup } })
    await host.knex.transaction(async (trx) => {
      const service = host.auth.service.using(createKnexStore({ knex: host.knex, users: members }).using(trx))
      const [user] = await service.signUp({ email: newAddress(), password, fields: { firstName: 'Ana', plan: 'pro' } })
      expect(user.fields).toEqual({ ...presented, wantsNews: null, plan: 'pro', stripeId: 'cus_secret' })
      expect(seen).toEqual([trx])
    })
  })
})
