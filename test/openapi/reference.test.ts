import { join } from 'node:path'
import { expect, test } from 'vitest'
import { appPerTest } from '../support/app-per-test'
import type { OpenApi, Operation } from '../support/openapi'
import { everything } from './configurations'
import { documentOf } from './document-of'

const start = appPerTest()
const page = join(import.meta.dirname, '../../docs/routes.md')

/** `npx vitest run --config test/vitest.config.mts test/openapi/reference.test.ts -u` writes the page anew. */
test('docs/routes.md lists every route, its body, its answers and its codes, as the router has them', async () => {
  const document = (await documentOf(
    await start({ ...everything, settings: { ...everything.settings, oauthErrorRedirect: null } }),
  )) as OpenApi & { tags: Tag[] } // the linter checks that there are tags

  await expect(pageOf(document)).toMatchFileSnapshot(page)
})

interface Tag {
  name: string
  description: string
}

type Described = Operation & {
  tags: string[]
  summary: string
  security: Record<string, []>[]
}

const intro = `# Routes

All routes below the prefix, except the [pages](pages.md). The tables show a router with every feature on: delivery \`both\`, \`backendLinks\`, \`mfaEnabled\`, \`jwtKeys\`,
\`accessTokenIssuer\`, \`oauthSuccessRedirect\`, \`appRedirects\`, \`loginUrl\`, and a provider with \`responseMode\`.

\`GET {prefix}/openapi.json\` returns the routes of your own router, with the JSON Schema of every body (OpenAPI 3.1). In production this route is
off until you set \`openapiEnabled: true\`.

The tables omit the errors that many routes have:

- Every route: 500 \`INTERNAL_ERROR\`, 503 \`SERVICE_UNAVAILABLE\`. If a path has no such method: 405 \`METHOD_NOT_ALLOWED\`.
- Routes with a body: 422 \`VALIDATION_ERROR\`, 413 \`PAYLOAD_TOO_LARGE\`, 415 \`UNSUPPORTED_MEDIA_TYPE\`.
- Routes with an access token or a session cookie: 401 \`UNAUTHORIZED\`, \`INVALID_TOKEN\`, \`TOKEN_EXPIRED\`.

[Errors](errors.md) lists all codes. A field with \`?\` is optional.

- With delivery \`cookie\` or \`session\` no route begins with \`/cookie\`. There each route has the errors of its \`/cookie\` row. For example,
  \`POST /login\` can respond 403 \`CSRF_VALIDATION_FAILED\`.
- With the option [\`guardRequest\`](how-to.md#check-requests-yourself), some routes can also respond 429 \`TOO_MANY_REQUESTS\`, or an error that
  your function throws, such as 403 \`FORBIDDEN\`. These routes are \`/signup\`, \`/login\`, \`/passkeys/login\` and their \`/cookie\` and \`/session\`
  routes, \`/activation/request\`, \`/password-reset/request\`, \`/email-verify/request\`, \`/email-login/request\`.
`

const everywhere = new Set(['VALIDATION_ERROR', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE', 'INTERNAL_ERROR', 'SERVICE_UNAVAILABLE'])
const ofCredentials = new Set(['UNAUTHORIZED', 'INVALID_TOKEN', 'TOKEN_EXPIRED'])

function pageOf(document: OpenApi & { tags: Tag[] }): string {
  return [intro, ...document.tags.map((tag) => chapterOf(document, tag))].join('\n')
}

function chapterOf({ paths }: OpenApi, { name, description }: Tag): string {
  const rows = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations as Record<string, Described>).flatMap(([method, operation]) =>
      operation.tags.includes(name) ? [rowOf(method, path, operation)] : [],
    ),
  )
  return `## ${name}\n\n${description}\n\n| Route | What it does | Request | Responses | Errors |\n|---|---|---|---|---|\n${rows.join('\n')}\n`
}

function rowOf(method: string, path: string, operation: Described): string {
  const route = `\`${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}\``
  return `| ${[route, operation.summary, askedOf(operation), answersOf(operation), codesOf(operation)].join(' | ')} |`
}

interface Fields {
  properties?: object
  required?: string[]
  oneOf?: { required: string[] }[]
  anyOf?: { required: string[] }[]
}

function askedOf({ requestBody, security }: Described): string {
  const fields = Object.entries(requestBody?.content ?? {}).flatMap(([type, { schema }]) => {
    const { properties = {}, required = [], oneOf, anyOf } = schema as Fields
    const either = (oneOf ?? anyOf ?? []).flatMap((one) => one.required)
    const names = Object.keys(properties)
      .filter((name) => !either.includes(name))
      .map((name) => (required.includes(name) ? `\`${name}\`` : `\`${name}?\``))
    if (either.length > 0) names.unshift(either.map((name) => `\`${name}\``).join(' or '))
    return names.length === 0 ? [] : [type === 'application/json' ? names.join(', ') : `form: ${names.join(', ')}`]
  })
  const credentials = security.flatMap((one) => Object.keys(one))
  return [...(credentials.length > 0 ? [credentials.join(' or ')] : []), ...fields].join('; ')
}

function answersOf({ responses }: Described): string {
  return Object.entries(responses)
    .filter(([status]) => Number(status) < 400)
    .map(([status, { content = {} }]) => [status, ...Object.values(content).map(({ schema }) => shapeOf(schema))].join(' '))
    .join(', ')
}

function shapeOf(schema: object): string {
  const { $ref, oneOf, items, properties, type } = schema as Record<string, unknown>
  if (typeof $ref === 'string') return `\`${$ref.split('/').at(-1)}\``
  if (Array.isArray(oneOf)) return oneOf.map(shapeOf).join(' or ')
  if (typeof items === 'object' && items !== null) return `[${shapeOf(items)}]`
  if (typeof properties === 'object' && properties !== null) return `\`{ ${Object.keys(properties).join(', ')} }\``
  return type === 'string' ? 'page' : String(type)
}

function codesOf({ responses, security }: Described): string {
  const skipped = security.length > 0 ? new Set([...everywhere, ...ofCredentials]) : everywhere
  const codes = Object.entries(responses).flatMap(([status, { content = {} }]) => {
    const known = Object.values(content).flatMap(({ schema }) => enumOf(schema))
    const own = [...new Set(known)].filter((code) => !skipped.has(code))
    return own.length > 0 ? [`${status} ${own.map((code) => `\`${code}\``).join(' ')}`] : []
  })
  return codes.join(', ')
}

function enumOf(schema: object): string[] {
  const { properties } = schema as { properties?: { code?: { enum?: string[] } } }
  return properties?.code?.enum ?? []
}
