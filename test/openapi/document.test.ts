import { createConfig, lintFromString } from '@redocly/openapi-core'
import Joi from 'joi'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { appPerTest } from '../support/app-per-test'
import { linkTemplates, mailbox } from '../support/mailbox'
import { configurations, everything } from './configurations'
import { documentOf, mountedRoutes } from './document-of'

const start = appPerTest()

const rules = {
  // The paths are the specification's: /oauth/accounts/unlink is no provider, since the route is asked for first.
  'no-ambiguous-paths': 'off',
  // A redirect is the answer of one line, and two lines refuse nobody.
  'operation-2xx-response': 'off',
  'operation-4xx-response': 'off',
} as const

/** The pages of docs/pages.md. A path that ends in a token is that of a mailed link. */
const isPage =
  /^(get|post) \/((login|signup|forgot-password|check-mail|mfa|tasks|logout|signed-out|reauthenticate|account(?!\/(export|restore$))(\/.+)?)|(password-reset|email-login|email-verify|email-change|security\/undo|invitations)\/\{token\})$|^post \/invitations\/leave$|^get \/activate\/\{token\}$/

describe.each(Object.entries(configurations))('with %s', (_name, options) => {
  test('GET /openapi.json answers a document that the linter has nothing to say about', async () => {
    const mounted = await start(options)

    const answer = await supertest(mounted.app).get('/auth/openapi.json')

    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
    const problems = await lintFromString({ source: answer.text, config: await createConfig({ extends: ['recommended-strict'], rules }) })
    expect(problems.map(({ ruleId, message, location }) => `${ruleId} ${message} ${location[0]?.pointer}`)).toEqual([])
  })

  test('it describes exactly the routes that are mounted, without pages', async () => {
    const mounted = await start(options)

    const { paths } = await documentOf(mounted)

    const described = Object.entries(paths).flatMap(([path, operations]) => Object.keys(operations).map((method) => `${method} ${path}`))
    const pages = mountedRoutes(mounted.auth).filter((route) => !described.includes(route))
    expect(described.filter((route) => !mountedRoutes(mounted.auth).includes(route))).toEqual([])
    for (const page of pages) expect(page).toMatch(isPage)
    for (const route of described) if (route.startsWith('get ')) expect(route).not.toMatch(isPage)
  })
})

test.each([
  ['openapiEnabled is false', { settings: { openapiEnabled: false } }],
  ['production has not asked for it', { options: { environment: 'production', mailer: mailbox() }, settings: linkTemplates }],
] as const)('the path is the host’s when %s', async (_name, options) => {
  const mounted = await start(options)

  expect((await supertest(mounted.app).get('/auth/openapi.json')).status).toBe(404)
})

test('the fields that a host adds to a signup are in the document', async () => {
  const schema = Joi.object({ company: Joi.string().max(40).required(), newsletter: Joi.boolean() })

  const { paths } = await documentOf(await start({ ...everything, options: { ...everything.options, signup: { schema } } }))

  expect(paths['/signup']?.['post']?.requestBody?.content['application/json']?.schema).toMatchObject({
    allOf: [
      { required: ['email', 'password'] },
      { properties: { company: { type: 'string', maxLength: 40 }, newsletter: { type: 'boolean' } }, required: ['company'] },
    ],
  })
})

test('a body is required if it must have a field, also one of several', async () => {
  const { paths } = await documentOf(await start(everything))
  const bodyOf = (path: string) => paths[path]?.['post']?.requestBody
  const eitherOf = (...names: string[]) => ({ oneOf: names.map((name) => ({ required: [name] })) })

  expect(bodyOf('/login')).toMatchObject({ required: true })
  expect(bodyOf('/oauth/{provider}/token')).toMatchObject({
    required: true,
    content: { 'application/json': { schema: eitherOf('access_token', 'id_token') } },
  })
  expect(bodyOf('/mfa/recovery-codes')).toMatchObject({
    required: true,
    content: { 'application/json': { schema: eitherOf('code', 'credential') } },
  })
  for (const [path, names] of [
    ['/email-login/confirm', ['token', 'code']],
    ['/cookie/reauthenticate', ['password', 'code', 'credential', 'email_code', 'ticket']],
  ] as const)
    expect(bodyOf(path)).toMatchObject({
      required: true,
      content: { 'application/json': { schema: { anyOf: names.map((name) => ({ required: [name] })) } } },
    })
  expect(bodyOf('/activate/{token}')).toMatchObject({ required: false })
})

test('what a host’s field admits, assumes or says of itself is not', async () => {
  const code = Joi.string().valid('let-me-in').default('let-me-in').description('let-me-in').required()
  const schema = Joi.object({ code })
  const mounted = await start({ ...everything, options: { ...everything.options, signup: { schema } } })

  const { text } = await supertest(mounted.app).get('/auth/openapi.json')

  expect(text).toContain('"code":{"type":"string"}')
  expect(text).not.toContain('let-me-in')
})

test('a guard before a line is the security that the document asks for', async () => {
  const { paths } = await documentOf(await start(everything))

  expect(paths['/me']?.['get']).toMatchObject({ security: [{ accessToken: [] }, { accessCookie: [] }] })
  expect(paths['/session/list']?.['get']).toMatchObject({ security: [{ sessionCookie: [] }] })
  expect(paths['/cookie/refresh']?.['post']).toMatchObject({ security: [{ refreshCookie: [] }] })
  expect(paths['/login']?.['post']).toMatchObject({ security: [] })
})
