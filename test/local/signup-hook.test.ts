import Joi from 'joi'
import { describe, expect, test, vi } from 'vitest'
import { createKnexStore, errors } from '../../src'
import type { AuthStore, UserRecord } from '../../src/store/auth-store'
import { rowCounts } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { amrOf, newAddress, onLocal, password, post, settled, userOf } from './people'

type OnSignup = (user: UserRecord, body: object, store: AuthStore) => void | Promise<void>

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe.each(await databases())('onSignup, on $name', (database) => {
  const { start } = onLocal(database)

  const failures: [what: string, onSignup: OnSignup, status: number, code: string][] = [
    ['a plain error is 500 INTERNAL_ERROR', () => Promise.reject(new Error('secret of the host')), 500, 'INTERNAL_ERROR'],
    ['a plain error thrown at once', () => raise(new Error('secret of the host')), 500, 'INTERNAL_ERROR'],
    [
      'an error with a status of its own',
      () => Promise.reject(Object.assign(new Error('x'), { status: 404, expose: true })),
      500,
      'INTERNAL_ERROR',
    ],
    ['something that is no error', () => Promise.reject('secret of the host'), 500, 'INTERNAL_ERROR'],
    ['an AppError keeps its own status', () => Promise.reject(new errors.ForbiddenError()), 403, 'FORBIDDEN'],
    [
      'so does a validation',
      () => Promise.reject(new errors.ValidationError({ details: { rule: 'invitation' } })),
      422,
      'VALIDATION_ERROR',
    ],
  ]

  test.each(failures)('%s; either way nothing was written, mailed or told', async (_what, fail, status, code) => {
    const wrote: string[] = []
    const onSignup: OnSignup = async (user, body, store) => {
      await store.users.update(user.id, { name: 'Written By The Hook' })
      wrote.push(user.id)
      await fail(user, body, store)
    }
    const host = await start({ options: { signup: { onSignup } } })
    const before = await rowCounts(host.knex)
    const told: object[] = []
    host.auth.events.on('signup', (payload) => told.push(payload))
    const email = newAddress()

    const answer = await post(host, '/signup', { email, password })

    expect([answer.status, answer.body.code]).toEqual([status, code])
    expect(answer.text).not.toContain('secret of the host')
    expect(wrote.length).toBeGreaterThan(0)
    expect(await rowCounts(host.knex)).toEqual(before)
    expect([host.mails.mails, told]).toEqual([[], []])
    // The address is free still.
    const open = await start()
    await post(open, '/signup', { email, password })
    expect((await userOf(open, email)).name).toBeNull()
    await settled(open)
  })

  test('one that hangs costs its own request only: that is 503 at the deadline, and the pool is whole', async () => {
    const began: AuthStore[] = []
    const onSignup: OnSignup = (_user, _body, store) => {
      if (began.push(store) > 1) return
      return new Promise(() => {}) // for good
    }
    const host = await start({ settings: { unitTimeoutSeconds: 1 }, options: { signup: { onSignup } } })
    const email = newAddress()

    const answer = await post(host, '/signup', { email, password })

    expect([answer.status, answer.body.code]).toEqual([503, 'SERVICE_UNAVAILABLE'])
    await vi.waitFor(() => expect(host.knex.client.pool.numUsed()).toBe(0))
    await expect(began[0]?.users.findByEmail(email)).rejects.toThrow()
    expect((await post(host, '/signup', { email, password })).status).toBe(201)
    await settled(host)
  })

  test('what it writes through the store is one unit with the account, and it may change the account', async () => {
    const onSignup: OnSignup = async (user, _body, store) => void (await store.users.update(user.id, { name: 'Guest' }))
    const host = await start({ settings: { autoActivate: true }, options: { signup: { onSignup } } })
    const email = newAddress()

    const { status, body } = await post(host, '/signup', { email, password })

    expect([status, amrOf(body.access_token)]).toEqual([201, ['pwd']])
    expect((await userOf(host, email)).name).toBe('Guest')
  })

  test('a unique rule of the host’s own that refuses the hook’s row is no taken address', async () => {
    const onSignup: OnSignup = async (user, _body, store) => {
      const { id: _id, ...twin } = user
      await store.users.insert(twin)
    }
    const host = await start({ options: { signup: { onSignup } } })
    const email = newAddress()

    expect((await post(host, '/signup', { email, password })).body.code).toBe('INTERNAL_ERROR')
    expect(await createKnexStore({ knex: host.knex }).users.findByEmail(email)).toBeNull()
  })
})

describe('signup.schema', () => {
  const { start } = onLocal(sqlite)

  test('extends the base body: onSignup gets what both let through, without the password and without what nobody declared', async () => {
    const seen: unknown[] = []
    const schema = Joi.object({ invitation: Joi.string().required(), seats: Joi.number() })
    const host = await start({ options: { signup: { schema, onSignup: (user, body) => void seen.push(user.email, body) } } })
    const email = newAddress()
    const refused = await post(host, '/signup', { email, password })

    expect([refused.status, refused.body.details], 'and what the host did not call required is optional').toEqual([
      422,
      { errors: [{ path: 'invitation', rule: 'any.required' }] },
    ])
    const given = { email, password, name: 'Ana', invitation: 'welcome', seats: 3, is_admin: true, other: 'x' }
    expect((await post(host, '/signup', given)).status).toBe(201)
    expect(seen).toEqual([email, { email, name: 'Ana', invitation: 'welcome', seats: 3 }])
  })

  test('a refusal of it carries the rule and never the value', async () => {
    const schema = Joi.object({ invitation: Joi.string().valid('welcome').messages({ 'any.only': 'was {#value}' }) })
    const host = await start({ options: { signup: { schema } } })
    const { status, text } = await post(host, '/signup', { email: newAddress(), password, invitation: 'guessed-invitation' })

    expect([status, text.includes('guessed-invitation'), text.includes(password)]).toEqual([422, false, false])
  })

  const loose: [what: string, schema: Joi.ObjectSchema][] = [
    ['any', Joi.object({ email: Joi.any(), password: Joi.any(), name: Joi.any() })],
    ['optional', Joi.object({ email: Joi.string().optional(), password: Joi.string().allow('').optional(), name: Joi.string() })],
    ['defaults', Joi.object({ email: Joi.string().default('mallory@example.test'), password: Joi.string().default('a default password') })],
    ['renaming', Joi.object({}).rename('mail', 'email', { override: true }).rename('pass', 'password', { override: true }).unknown(true)],
    [
      'trimming and converting',
      Joi.object({ email: Joi.string().trim().uppercase(), password: Joi.string().trim() }).prefs({ convert: true }),
    ],
  ]

  test.each(loose)('cannot loosen email and password: %s', async (_what, schema) => {
    const seen: unknown[] = []
    const host = await start({ options: { signup: { schema, onSignup: (_user, body) => void seen.push(body) } } })
    const bodies: [what: string, body: object][] = [
      ['no email', { password, mail: 'ana@example.test' }],
      ['no address', { email: 'ana', password }],
      ['no password', { email: 'ana@example.test', pass: password }],
      ['a short password', { email: 'ana@example.test', password: 'short' }],
      ['a number', { email: 'ana@example.test', password: 123456789012 }],
      ['a long name', { email: 'ana@example.test', password, name: 'x'.repeat(121) }],
    ]
    for (const [what, body] of bodies) expect((await post(host, '/signup', body)).status, what).toBe(422)

    const email = newAddress()
    const chosen = `  ${password} `
    expect((await post(host, '/signup', { email, password: chosen, mail: 'x@example.test', pass: 'another password of x' })).status).toBe(
      201,
    )
    const user = await userOf(host, email)
    expect(seen, 'and the hook hears of the address that is stored').toEqual([expect.objectContaining({ email, name: null })])
    expect(await host.hasher.verify(user.hashedPassword, chosen)).toBe(true)
  })
})

function raise(error: Error): never {
  throw error
}
