import Joi from 'joi'
import Joi17 from 'joi17'
import * as v from 'valibot'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type AuthRouterOptions, ConfigurationError, createAuthRouter, type SignupSchema } from '../../src'
import { newAddress, onLocal, password, post } from '../local/people'
import { testSecret } from '../support/app'
import { databases } from '../support/databases'
import { linkTemplates } from '../support/mailbox'
import { createMembers, memberOptions, members } from './members'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start, opened } = onLocal(sqlite)
beforeAll(() => createMembers(opened().knex))

/** One and the same schema in each library: a first name that is trimmed, a phone, and terms that are no field. */
const schemas: [vendor: string, schema: SignupSchema][] = [
  [
    'zod',
    z.object({
      firstName: z.string().trim().min(1).max(20),
      phone: z
        .string()
        .regex(/^\+\d+$/)
        .nullable()
        .optional(),
      terms: z.literal(true),
    }),
  ],
  [
    'valibot',
    v.object({
      firstName: v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(20)),
      phone: v.optional(v.nullable(v.pipe(v.string(), v.regex(/^\+\d+$/)))),
      terms: v.literal(true),
    }),
  ],
  ['one made by hand, which answers later', handMade()],
]

function startWith(signup: NonNullable<AuthRouterOptions['signup']>) {
  return start({ settings: { autoActivate: true, ...linkTemplates }, options: memberOptions(opened().knex, { signup }) })
}

describe.each(schemas)('signup.schema of %s', (_vendor, schema) => {
  test('writes the fields that it let through, and hands its output to onSignup', async () => {
    const bodies: unknown[] = []
    const host = await startWith({ schema, onSignup: (_user, body) => void bodies.push(body) })
    const email = newAddress()
    const sent = { email, password, firstName: '  Ana ', phone: '+351', terms: true, plan: 'pro' }

    expect((await post(host, '/signup', sent)).status).toBe(201)

    expect(await host.knex('members').where({ email }).first('first_name', 'phone', 'plan')).toEqual({
      first_name: 'Ana',
      phone: '+351',
      plan: 'free',
    })
    expect(bodies).toEqual([{ email, name: null, firstName: 'Ana', phone: '+351', terms: true }])
  })

  test('refuses with the place of each issue, and with nothing of what was sent', async () => {
    const host = await startWith({ schema })
    const answer = await post(host, '/signup', { email: newAddress(), password, firstName: 'Ana', phone: 'a secret phone', terms: true })
    expect([answer.status, answer.body.details]).toEqual([422, { errors: [{ path: 'phone', rule: 'invalid' }] }])
    expect(answer.text).not.toContain('a secret phone')
  })

  test('PATCH /me counts the issues of what was sent alone, and keeps the output where there is one', async () => {
    const host = await startWith({ schema })
    const { body } = await post(host, '/signup', { email: newAddress(), password, firstName: 'Ana', terms: true })
    const change = (fields: object) =>
      host
        .browser()
        .patch('/auth/me')
        .set({ Authorization: `Bearer ${body.access_token}` })
        .send({ fields })

    expect((await change({ phone: '+49' })).body.fields.phone, 'terms are missing, and nobody sent them').toBe('+49')
    expect((await change({ phone: 'x' })).body.details).toEqual({ errors: [{ path: 'fields.phone', rule: 'invalid' }] })
  })
})

test('a Standard Schema is not shown the password', async () => {
  const presented: unknown[] = []
  const schema = standard((body) => {
    presented.push(body)
    return { value: { firstName: 'Ana' } }
  })
  const host = await startWith({ schema })
  const email = newAddress()
  await post(host, '/signup', { email, password, firstName: 'Ana', other: 1 })
  expect(presented).toEqual([{ email, firstName: 'Ana', other: 1 }])
})

test('where a Standard Schema lets everything through, PATCH /me stores its output', async () => {
  const host = await startWith({ schema: z.object({ firstName: z.string().trim() }) })
  const { body } = await post(host, '/signup', { email: newAddress(), password, firstName: 'Ana' })
  const answer = await host
    .browser()
    .patch('/auth/me')
    .set({ Authorization: `Bearer ${body.access_token}` })
    .send({ fields: { firstName: '  Anna ' } })
  expect(answer.body.fields.firstName).toBe('Anna')
})

test('a writable field that a Standard Schema drops is not written, and one warning names it', async () => {
  const host = await startWith({ schema: z.object({ firstName: z.string() }) })
  for (const phone of ['+1', '+2']) {
    const email = newAddress()
    await post(host, '/signup', { email, password, firstName: 'Ana', phone })
    expect((await host.knex('members').where({ email }).first()).phone).toBeNull()
  }
  const warnings = host.logs.entries.filter(({ fields }) => 'field' in fields && fields.field === 'phone')
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toMatchObject({ level: 'warn', message: expect.stringContaining('Describe it in signup.schema') })
})

test('a schema that lets through no object is a fault of the host: 500, and nobody is made', async () => {
  const host = await startWith({ schema: standard(() => ({ value: 'text' })) })
  const email = newAddress()
  expect((await post(host, '/signup', { email, password })).status).toBe(500)
  expect(await host.knex('members').where({ email })).toEqual([])
})

test('the API document tells the names and kinds of the fields where the library can, and nothing it admits', async () => {
  const host = await startWith({ schema: z.object({ firstName: z.string(), invitation: z.enum(['welcome']) }) })
  const { text } = await host.browser().get('/auth/openapi.json')
  expect(text).toContain('"firstName":{"type":"string"}')
  expect(text).not.toContain('welcome')
})

describe('at boot', () => {
  const create = (schema: unknown, changes: object = {}) =>
    createAuthRouter({
      settings: { jwtSecret: testSecret, oauthRedirectBaseUrl: 'https://app.example.test' },
      environment: 'test',
      checkTables: false, // nobody waits for the check of a router that is only made
      logger: { info() {}, warn() {}, error() {} },
      ...memberOptions(opened().knex, { signup: { schema: schema as SignupSchema } }),
      ...changes,
    })
  const described = Joi.object({ firstName: Joi.string(), phone: Joi.string(), wantsNews: Joi.boolean() })

  test('the writable fields that a Joi schema does not describe are named', () => {
    expect(() => create(described)).not.toThrow()
    expect(() => create(Joi.object({ firstName: Joi.string() }))).toThrow(
      /a person may write phone, wantsNews, and option signup\.schema does not describe them; .*readOnly: true/,
    )
    expect(() => create(described, { signup: {} })).toThrow(/firstName, phone, wantsNews/)
    expect(members.fields.plan.readOnly, 'which nobody has to describe').toBe(true)
  })

  test('a Standard Schema cannot be asked for its keys', () => {
    expect(() => create(z.object({}))).not.toThrow()
  })

  test('a schema of another joi is refused with the option and both versions', () => {
    const refusal = () => create(Joi17.object({ firstName: Joi17.string() }))
    expect(refusal).toThrow(ConfigurationError)
    expect(refusal).toThrow(new RegExp(`signup\\.schema is a schema of joi ${Joi17.version}, but doorward uses joi ${Joi.version}`))
  })

  test('a schema of another joi that speaks Standard Schema is used through it', () => {
    const other = Object.assign(
      standard(() => ({ value: {} })),
      { [Symbol.for('@hapi/joi/schema')]: { version: '18.0.0' } },
    )
    expect(() => create(other)).not.toThrow()
  })

  test.each([
    ['a Joi schema of a text', Joi.string()],
    ['an object that is no schema', { validate: () => ({}) }],
    ['a Standard Schema of another version', { '~standard': { version: 2, validate: () => ({}) } }],
  ])('%s is refused', (_what, schema) => {
    expect(() => create(schema)).toThrow(/signup\.schema must be a Joi\.object\(\), or an object schema of Standard Schema v1/)
  })
})

type Validate = (value: unknown) => { value: unknown } | { issues: { message: string; path: (string | { key: string })[] }[] }

function standard(validate: Validate) {
  return { '~standard': { version: 1, vendor: 'by hand', validate } } as const
}

function handMade(): SignupSchema {
  return {
    '~standard': {
      version: 1,
      vendor: 'by hand',
      async validate(given: unknown) {
        const { firstName, phone, terms } = given as Record<string, unknown>
        const issues = [
          ...(typeof firstName === 'string' ? [] : [{ message: 'no', path: ['firstName'] }]),
          ...(phone === undefined || phone === null || /^\+\d+$/.test(String(phone))
            ? []
            : [{ message: `was ${phone}`, path: [{ key: 'phone' }] }]),
          ...(terms === true ? [] : [{ message: 'no', path: ['terms'] }]),
        ]
        if (issues.length > 0) return { issues }
        return { value: { firstName: String(firstName).trim(), ...(phone !== undefined && { phone }), terms } }
      },
    },
  }
}
