import Joi from 'joi'
import { beforeAll, describe, expect, test } from 'vitest'
import { newAddress, onLocal, otherPassword, password, post } from '../local/people'
import { databases } from '../support/databases'
import { createMembers, memberOptions } from './members'

const uuid = expect.stringMatching(/^[0-9a-f-]{36}$/)
const pending = {
  user_id: uuid,
  activation_required: true,
  activation_url: null,
  access_token: null,
  refresh_token: null,
  signup_token: expect.any(String),
}

/** A schema that leaves to the database what it should refuse by itself. */
const schema = Joi.object({ firstName: Joi.string().required(), phone: Joi.string(), wantsNews: Joi.boolean() })

describe.each(await databases())('a value of a field that the database refuses, on $name', (database) => {
  const { start, opened } = onLocal(database)
  beforeAll(async () => {
    await createMembers(opened().knex)
    await opened().knex.schema.alterTable('members', (table) => table.unique(['phone']))
  })

  const startMembers = (settings: object = {}) => start({ settings, options: memberOptions(opened().knex, { signup: { schema } }) })
  const lost = (host: Awaited<ReturnType<typeof startMembers>>) =>
    host.logs.entries.filter(({ message }) => /a sign-up was lost/.test(message))

  test('a unique value that is in use: the same 201 for a new and for a taken address, no account, and the log says it', async () => {
    const host = await startMembers()
    const [first, second] = [newAddress(), newAddress()]
    const body = { password, firstName: 'Ana', phone: `+55 ${first}`.slice(0, 30) }
    expect((await post(host, '/signup', { email: first, ...body })).status).toBe(201)

    for (const email of [second, first]) {
      const { status, body: answered } = await post(host, '/signup', { email, ...body })
      expect([status, answered]).toEqual([201, pending])
    }
    expect(await host.knex('members').where({ email: second })).toEqual([])
    expect(lost(host).map(({ level, message }) => [level, message.includes('#a-sign-up-was-lost')])).toEqual([['error', true]])
    expect(JSON.stringify(lost(host))).not.toMatch(/\+55|example\.test/)
  })

  test('where answers tell of a taken address, it is 409 CONFLICT, and no address is called taken', async () => {
    const host = await startMembers({ autoActivate: true })
    const body = { password, firstName: 'Ana', phone: `+56 ${newAddress()}`.slice(0, 30) }
    await post(host, '/signup', { email: newAddress(), ...body })

    const refused = await post(host, '/signup', { email: newAddress(), ...body })
    expect([refused.status, refused.body.code]).toEqual([409, 'CONFLICT'])
    await expect(
      host.auth.service.signUp({ email: newAddress(), password, fields: { firstName: 'A', phone: body.phone } }),
    ).rejects.toMatchObject({
      code: 'CONFLICT',
    })
  })

  test('a text that is too long tells a new address from a taken one by nothing', async () => {
    const host = await startMembers()
    const taken = newAddress()
    await post(host, '/signup', { email: taken, password, firstName: 'Ana' })
    const answers = []
    for (const email of [newAddress(), taken])
      answers.push(await post(host, '/signup', { email, password: otherPassword, firstName: 'a'.repeat(500) }))

    expect(answers.map(({ status, body }) => [status, body])).toEqual(Array(2).fill([201, pending]))
    expect(lost(host)).toHaveLength(database.name === 'sqlite' ? 0 : 2) // which keeps to no width
  })

  test('an id of another version than ours, of the owner of an address, shows in no answer', async () => {
    const host = await startMembers()
    const [taken, free] = [newAddress(), newAddress()]
    await post(host, '/signup', { email: taken, password, firstName: 'Ana' })
    await host.knex('auth_user_tokens').delete()
    await host.knex('members').where({ email: taken }).update({ id: '6ba7b810-9dad-11d1-80b4-00c04fd430c8' })

    for (const email of [taken, free]) expect((await post(host, '/signup', { email, password, firstName: 'Ana' })).body).toEqual(pending)
  })

  test('a rule about several fields holds for PATCH /me too, unless the stored values break it already', async () => {
    const both = schema.with('wantsNews', 'phone')
    const host = await start({ settings: { autoActivate: true }, options: memberOptions(opened().knex, { signup: { schema: both } }) })
    const signup = await post(host, '/signup', { email: newAddress(), password, firstName: 'Ana' })
    const change = (fields: object) =>
      host
        .browser()
        .patch('/auth/me')
        .set({ Authorization: `Bearer ${signup.body.access_token}` })
        .send({ fields })

    expect((await change({ wantsNews: true })).status).toBe(422)
    expect((await change({ wantsNews: true, phone: `+57 ${newAddress()}`.slice(0, 30) })).status).toBe(200)
    await host.knex('members').where({ id: signup.body.user_id }).update({ phone: null })
    expect((await change({ firstName: 'Anna' })).status).toBe(200)
  })
})
