import { adminTable } from '../../src/client/admin'
import { routes } from '../../src/client/routes'
import { operationsOf, table } from '../../src/client/table'
import type { OpenApi } from '../support/openapi'

interface Line {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly flags: string
}

interface Operation extends Line {
  readonly group: string
}

/** The host's own tasks have routes of their own, which this document lacks. */
const ofHosts = ['/tasks/:key']
const completeTask = '/** Do a task of the host. */ complete(key: string, body?: Readonly<Record<string, unknown>>): Promise<LoginResult>'

/** Every operation of ours that has a method of the client. */
export function everyOperation(): Operation[] {
  return groupsOf(table).filter(({ path }) => !ofHosts.includes(path))
}

export function adminOperations(): Operation[] {
  return groupsOf(adminTable)
}

function groupsOf(groups: Readonly<Record<string, string>>): Operation[] {
  return Object.entries(groups).flatMap(([group, lines]) => linesOf(lines, group).map((operation) => ({ ...operation, group })))
}

function linesOf(lines: string, group = ''): Line[] {
  return operationsOf(lines).map(([, name = '', line]) => {
    const [, method, path = '', flags = ''] = /(\w*)(\S+) ?(.*)/.exec(line || (routes[`${group}.${name}`] ?? '')) ?? []
    return { name, method: method || 'POST', path, flags }
  })
}

/**
 * The text of src/client/operations.ts: the types of every method, from the OpenAPI document of a router with every feature on.
 * @param others documents of routers with less: what one of them does not require or answer is optional
 */
export function operationsFile(everything: OpenApi, others: readonly OpenApi[]): string {
  const document = structuredClone(everything)
  for (const other of others) relax(document, other)
  const operations = everyOperation()
  const admin = adminOperations()
  const interfaces = Object.entries(document.components.schemas)
    .filter(([name]) => used(document, [...operations, ...admin]).has(name))
    .map(([name, schema]) => `export interface ${name} ${typeOf(schema, /^(Admin)?User$/.test(name) ? userFields : [])}\n`)
  return [
    intro,
    ...interfaces,
    `/** Every code of a refusal. */\nexport type ErrorCode =\n${codesOf(document)
      .map((code) => `  | '${code}'\n`)
      .join('')}`,
    results,
    `/** Every operation of the router that has a method. */\nexport interface ClientOperations {\n${membersOf(document, operations)}}\n`,
    `/** Operations on the accounts of other people. */\nexport interface AdminOperations {\n${membersOf(document, admin)}}\n`,
  ].join('\n')
}

/** Each object of `value` requires no more than the object at the same place of `other`. */
function relax(value: unknown, other: unknown): void {
  if (typeof value !== 'object' || value === null || typeof other !== 'object' || other === null) return
  const [one, less] = [value, other] as [Schema, Schema]
  const isObject = one.properties !== undefined && less.properties !== undefined
  if (isObject) one.required = one.required?.filter((name) => less.required?.includes(name)) ?? []
  for (const key of Object.keys(value)) relax((value as Record<string, unknown>)[key], (other as Record<string, unknown>)[key])
}

function membersOf(document: OpenApi, operations: readonly Operation[]): string {
  const groups = [...new Set(operations.map(({ group }) => group))]
  const lines = (group: string) => operations.filter((one) => one.group === group).map((one) => methodOf(document, one))
  const members = groups.flatMap((group) =>
    group === ''
      ? lines('')
      : [`readonly ${group}: {`, ...[...lines(group), ...(group === 'tasks' ? [completeTask] : [])].map((line) => `  ${line}`), '}'],
  )
  return members.map((line) => `  ${line}\n`).join('')
}

const intro = `/**
 * Written by test/client/operations.test.ts from the OpenAPI document of a router with every feature on:
 * \`npx vitest run --config test/vitest.config.mts test/client/operations.test.ts -u\`
 */
`

/** The host's own fields are not in the document of this router. */
const userFields = ['readonly fields?: Readonly<Record<string, unknown>>']

const results = `/** Told beside \`kind\` if the router says it. */
interface Told {
  /** The first verification of the address removed the password: the person has to set a new one. */
  readonly password_required?: true
  /** Where the login began. */
  readonly return_to?: string
  /** This login trusted the browser: for a time, its logins by password need no second factor. */
  readonly device_trusted?: true
}

/** How a login ended: in a session, or with a step that is still to do. */
export type LoginResult = Told &
  (
    | { readonly kind: 'session'; readonly user: User }
    | { readonly kind: 'second_factor'; readonly methods: readonly ('otp' | 'passkey')[] }
    | { readonly kind: 'tasks'; readonly tasks: readonly string[] }
  )

/** \`activation_required\`: the person has to open the link in the mail first. */
export type SignUpResult = LoginResult | { readonly kind: 'activation_required' }
`

/** What the client fills in by itself. */
const filled: Readonly<Record<string, string>> = {
  t: 'refresh_token',
  m: 'mfa_token',
  q: 'request_token',
  a: 'signup_token',
  x: 'task_token',
}
const ceremonies: Readonly<Record<string, string>> = {
  '/passkeys/register': '/passkeys/register/options',
  '/signup/passkey': '/signup/passkey/options',
  '/passkeys/login': '/passkeys/login/options',
}

interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  items?: Schema
  oneOf?: Schema[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
}

interface Described {
  summary: string
  parameters?: { in: string }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
}

function describedOf(document: OpenApi, method: string, path: string): Described {
  const found = (document.paths as unknown as Record<string, Record<string, Described>>)[path.replace(/:(\w+)/g, '{$1}')]?.[
    method.toLowerCase()
  ]
  if (!found) throw new Error(`the router has no route ${method} ${path}`)
  return found
}

function methodOf(document: OpenApi, operation: Line): string {
  const { name, method, path, flags } = operation
  const described = describedOf(document, method, path)
  const parameters = (path.match(/:\w+/g) ?? []).map((text) => `${text.slice(1)}: string`)
  const hasQuery = described.parameters?.some((one) => one.in === 'query')
  const body = hasQuery ? 'query?: Readonly<Record<string, string | number | boolean>>' : bodyOf(document, operation)
  const all = [...parameters, ...(body === null ? [] : [body])].join(', ')
  const answer = name === 'signUp' ? 'SignUpResult' : flags.includes('r') ? 'LoginResult' : answerOf(described)
  return `/** ${described.summary}. */ ${name}(${all}): Promise<${answer}>`
}

function schemaOf({ requestBody }: Described): Schema | null {
  return requestBody?.content['application/json']?.schema ?? null
}

function bodyOf(document: OpenApi, { method, path, flags }: Line): string | null {
  const plain = schemaOf(describedOf(document, method, path))
  const ofCookieRoute = flags.includes('k') ? schemaOf(describedOf(document, method, `/cookie${path}`)) : null
  const own = plain && { ...plain, properties: { ...plain.properties, ...ofCookieRoute?.properties } }
  const options = ceremonies[path]
  const schema = options && own ? withoutCeremony(own, schemaOf(describedOf(document, 'POST', options))) : own
  if (!schema) return null
  const hidden = Object.entries(filled).flatMap(([flag, name]) => (flags.includes(flag) && flag !== 'q' && flag !== 'a' ? [name] : []))
  const either = [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])].flatMap(({ required = [] }) => required)
  const properties = Object.entries(schema.properties ?? {}).filter(([name]) => !hidden.includes(name))
  const required = (schema.required ?? []).filter((name) => !hidden.includes(name))
  const fields = properties
    .filter(([name]) => !either.includes(name))
    .map(([name, field]) => `${name}${required.includes(name) ? '' : '?'}: ${typeOf(field)}`)
  const takesPasskey = properties.some(([name]) => name === 'credential')
  if (takesPasskey && !either.includes('credential')) fields.push('passkey?: true')
  const ways = either.map((name) => `{ ${name}: ${typeOf(schema.properties?.[name] ?? {})} }`)
  if (takesPasskey && either.includes('credential')) ways.push('{ passkey: true }')
  const always = fields.length > 0 ? `{ ${fields.join('; ')} }` : 'Record<string, never>'
  const type = ways.length > 0 ? `${always} & (${ways.join(' | ')})` : always
  return `body${required.length + ways.length > 0 ? '' : '?'}: ${type}`
}

/** The client itself speaks with the authenticator. */
function withoutCeremony(own: Schema, options: Schema | null): Schema {
  const { credential: _credential, challenge_token: _token, ...rest } = own.properties ?? {}
  return { properties: { ...options?.properties, ...rest }, required: [] }
}

function answerOf({ responses }: Described): string {
  const types = Object.entries(responses).flatMap(([status, { content }]) => {
    if (!/^20\d$/.test(status)) return []
    return content?.['application/json'] ? typeOf(content['application/json'].schema).split(' | ') : ['undefined']
  })
  return [...new Set(types)].join(' | ')
}

function typeOf(schema: Schema, more: readonly string[] = []): string {
  const { $ref, type, enum: values, items, oneOf, properties, required = [] } = schema
  if ($ref) return $ref.split('/').at(-1) ?? ''
  if (oneOf) return oneOf.map((one) => typeOf(one)).join(' | ')
  if (values) return values.map((value) => `'${value}'`).join(' | ')
  if ('const' in schema) return typeof schema.const === 'string' ? `'${schema.const}'` : String(schema.const)
  if (type === 'array') return `readonly ${parenthesized(typeOf(items ?? {}))}[]`
  if (properties) {
    const fields = Object.entries(properties).map(
      ([name, field]) => `readonly ${name}${required.includes(name) ? '' : '?'}: ${typeOf(field)}`,
    )
    return `{ ${[...fields, ...more].join('; ')} }`
  }
  const names = [type ?? []].flat().map((name) => ({ integer: 'number', object: 'object' })[name] ?? name)
  return names.length > 0 ? names.join(' | ') : 'unknown'
}

function parenthesized(type: string): string {
  return type.includes('|') ? `(${type})` : type
}

/** The schemas that the methods name, and those inside. */
function used(document: OpenApi, operations: readonly Line[]): ReadonlySet<string> {
  const found = new Set(['User', 'ClientConfig'])
  const visit = (value: unknown): void => {
    const names = [...JSON.stringify(value ?? null).matchAll(/#\/components\/schemas\/(\w+)"/g)].map(([, name = '']) => name)
    for (const name of names.filter((one) => !found.has(one) && one !== 'Error')) {
      found.add(name)
      visit((document.components.schemas as Record<string, unknown>)[name])
    }
  }
  for (const { method, path, flags } of operations) {
    const { responses, ...described } = describedOf(document, method, path)
    visit(described)
    if (!flags.includes('r')) visit(Object.entries(responses).filter(([status]) => status.startsWith('2')))
  }
  return found
}

function codesOf(document: OpenApi): string[] {
  const text = JSON.stringify(document.paths)
  const codes = [...text.matchAll(/"code":\{"enum":\[([^\]]*)\]/g)].flatMap(([, list = '']) => JSON.parse(`[${list}]`) as string[])
  return [...new Set(codes)].sort()
}
