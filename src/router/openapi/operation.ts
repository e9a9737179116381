import type Joi from 'joi'
import {
  InternalError,
  PayloadTooLargeError,
  ServiceUnavailableError,
  UnauthorizedError,
  UnsupportedMediaTypeError,
  ValidationError,
} from '../../core/errors'
import { type Answer, type Credential, type Description, descriptionOf, type JsonSchema, type Refusal } from '../../http/description'
import { isJoiSchema, type SignupSchema, type StandardSchema } from '../../http/host-schema'
import type { Route } from '../../http/routes'

interface OperationContext {
  readonly named: NamedSchemas
  readonly tag: string
  /** Returns the security schemes of a credential. A request needs only one of these schemes. */
  readonly schemesOf: (credential: Credential) => readonly string[]
}

/** Returns the OpenAPI operation of a route. */
export function operationOf(ctx: OperationContext, route: Route): object {
  const { method, path, describes } = route
  const body = bodyOf(ctx, route)
  const parameters = [...pathParameters(path), ...queryParameters(describes)]
  return {
    operationId: operationId(method, path),
    tags: [ctx.tag],
    summary: describes.summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: body }),
    security: securityOf(ctx, route),
    responses: responsesOf(ctx, route),
    ...(describes.refusals === 'redirect' && { description: 'An error is a redirect too. The parameter `error` contains the code.' }),
  }
}

/** Returns for example postOauthProviderLink for `POST /oauth/:provider/link`. */
function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
}

/** Returns the query parameters. A parameter with several keys is described as an exploded object. */
function queryParameters({ query = [] }: Description): object[] {
  return query.map((parameter) => ({
    in: 'query',
    required: false,
    ...parameter,
    ...(parameter.schema['type'] === 'object' && { style: 'form', explode: true }),
  }))
}

function bodyOf({ named }: OperationContext, { body, describes: { form, hostsBody, needsOneOf = [] } }: Route): object | null {
  const fields = form ?? body
  if (!fields) return null
  const own = withOneOf(jsonSchemaOf(fields), needsOneOf)
  const schema = hostsBody ? { allOf: [named.refer(own), hostsSchemaOf(hostsBody)] } : named.refer(own)
  return { required: needsAField(own), content: { [form ? 'application/x-www-form-urlencoded' : 'application/json']: { schema } } }
}

function securityOf({ schemesOf }: OperationContext, { before = [], describes }: Route): object[] {
  const credentials = new Set([...before.map((step) => descriptionOf(step)?.credential), describes.credential])
  return [...credentials].flatMap((credential) => (credential ? schemesOf(credential).map((scheme) => ({ [scheme]: [] })) : []))
}

function responsesOf(ctx: OperationContext, route: Route): object {
  const responses = new Map<number, Response>()
  for (const answer of route.describes.answers) add(responses, answer.status, answerOf(ctx, answer))
  for (const [status, refusals] of byStatus(refusalsOf(route))) add(responses, status, refusalOf(status, refusals))
  const sorted = Object.fromEntries([...responses].sort(([one], [other]) => one - other))
  return route.describes.hostRefuses ? { ...sorted, default: hostsRefusal } : sorted
}

const hostsRefusal: Response = {
  description: 'Further errors of this application.',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
}

interface Response {
  readonly description: string
  readonly headers?: object
  readonly content?: object
}

/** Adds a response. If the status has a response already, joins the two. */
function add(responses: Map<number, Response>, status: number, response: Response): void {
  const known = responses.get(status)
  const description =
    known && known.description !== response.description ? `${known.description} ${response.description}` : response.description
  const content = { ...known?.content, ...response.content }
  responses.set(status, { ...known, ...response, description, ...(Object.keys(content).length > 0 && { content }) })
}

function answerOf({ named }: OperationContext, { status, description, schema, isPage }: Answer): Response {
  return {
    description,
    ...(status === 302 && { headers: { Location: { schema: { type: 'string', format: 'uri-reference' } } } }),
    ...(isPage && { content: { 'text/html': { schema: { type: 'string' } } } }),
    ...(schema && { content: { 'application/json': { schema: named.refer(schema) } } }),
  }
}

/** Returns all errors of a route: its own errors, errors of its middlewares, errors of reading the request, and general errors. */
function refusalsOf(line: Route): readonly Refusal[] {
  const steps = (line.before ?? []).flatMap((step) => descriptionOf(step)?.refuses ?? [])
  const readsBody = line.body !== undefined || line.describes.form !== undefined
  const readsPath = line.path.includes(':')
  const reading = [
    ...(readsBody ? [PayloadTooLargeError, UnsupportedMediaTypeError] : []),
    ...(readsBody || readsPath || line.describes.query ? [ValidationError] : []),
  ]
  if (line.describes.refusals === 'redirect') return readsPath ? [ValidationError] : [] // a malformed path gets no redirect
  // The account changed while the host was asked.
  const ofLogin = line.delivers === 'login' ? [UnauthorizedError] : []
  return [...(line.describes.refuses ?? []), ...steps, ...reading, ...ofLogin, InternalError, ServiceUnavailableError]
}

function byStatus(refusals: readonly Refusal[]): Map<number, Refusal[]> {
  const sorted = new Map<number, Refusal[]>()
  for (const refusal of new Set(refusals)) sorted.set(refusal.status, [...(sorted.get(refusal.status) ?? []), refusal])
  return sorted
}

/** Returns the response of an error: the JSON error envelope. */
function refusalOf(status: number, refusals: readonly Refusal[]): Response {
  return {
    description: [...new Set(refusals.map(({ code, detail }) => `${code}: ${detail['en-US']}`))].join(' '),
    ...(headersOf[status] && { headers: headersOf[status] }),
    content: { 'application/json': { schema: envelopeOf(refusals.map(({ code }) => code)) } },
  }
}

const headersOf: Readonly<Record<number, object>> = {
  401: { 'WWW-Authenticate': { schema: { type: 'string' } } },
  429: { 'Retry-After': { description: 'Seconds.', schema: { type: 'integer', minimum: 1 } } },
  503: { 'Retry-After': { description: 'Seconds.', schema: { type: 'integer', minimum: 1 } } },
}

function envelopeOf(codes: readonly string[]): JsonSchema {
  return { $ref: '#/components/schemas/Error', properties: { code: { enum: [...new Set(codes)] } } }
}

/** Collects named schemas. Each schema is described once, and other places refer to that description. */
export class NamedSchemas {
  readonly all = new Map<string, JsonSchema>()

  /** Returns the schema with a reference in place of every part that has a `title`. */
  refer(schema: JsonSchema): JsonSchema {
    const referring = Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, this.referWithin(value)]))
    const { title, ...rest } = referring
    if (typeof title !== 'string') return referring
    this.all.set(title, rest)
    return { $ref: `#/components/schemas/${title}` }
  }

  private referWithin(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.referWithin(item))
    return typeof value === 'object' && value !== null ? this.refer(value as JsonSchema) : value
  }
}

/**
 * Returns the Joi schema of a body as JSON Schema.
 * @param presence whether a field is required if its schema does not say so; as in `validate`
 */
function jsonSchemaOf(schema: Joi.ObjectSchema, presence: 'required' | 'optional' = 'required'): JsonSchema {
  const silent = presence === 'required' ? fieldsThatDoNotSay(schema) : []
  const spoken = silent.length === 0 ? schema : schema.fork(silent, (field) => field.required())
  // `unknown()`, because unknown fields are ignored. If a host uses another major version of Joi, its schema has no JSON Schema.
  const described = spoken.unknown()['~standard'].jsonSchema?.input({ target: 'draft-2020-12' }) ?? { type: 'object' }
  return { ...described, ...alternativesOf(schema) }
}

/** Returns true if a body without any field is refused. */
function needsAField({ required = [], oneOf, anyOf }: JsonSchema): boolean {
  return (required as unknown[]).length > 0 || oneOf !== undefined || anyOf !== undefined
}

/** Returns the schema of a body that has at least one of the fields. Settings decide which of these fields the schema has. */
function withOneOf(schema: JsonSchema, names: readonly string[]): JsonSchema {
  const known = names.filter((name) => Object.hasOwn(Object(schema['properties']), name))
  return known.length > 0 ? { ...schema, anyOf: known.map((name) => ({ required: [name] })) } : schema
}

/** Returns what Joi leaves out of the JSON Schema: the rule that a body has exactly one of several fields. */
function alternativesOf(schema: Joi.ObjectSchema): JsonSchema {
  const { dependencies = [] } = schema.describe() as { dependencies?: { rel: string; peers: readonly string[] }[] } // as Joi documents
  const one = dependencies.find(({ rel }) => rel === 'xor')
  return one ? { oneOf: one.peers.map((name) => ({ required: [name] })) } : {}
}

function fieldsThatDoNotSay(schema: Joi.ObjectSchema): string[] {
  const { keys = {} } = schema.describe() as { keys?: Record<string, { flags?: { presence?: string } }> } // as Joi documents
  return Object.entries(keys).flatMap(([name, { flags }]) => (flags?.presence === undefined ? [name] : []))
}

/**
 * Returns the names, types, formats and lengths of a host's fields, and which fields are required. Leaves out everything else, because the
 * document is public. The patterns, allowed values, defaults and messages of a schema can be private (invitation codes). If a schema cannot
 * be described, the result is `{ type: 'object' }`.
 */
function hostsSchemaOf(schema: SignupSchema): JsonSchema {
  try {
    return told(isJoiSchema(schema) ? jsonSchemaOf(schema, 'optional') : standardJsonSchema(schema))
  } catch {
    return { type: 'object' }
  }
}

/**
 * Returns the JSON Schema of a Standard Schema. Some libraries provide it (standardschema.dev/json-schema). For other libraries, returns `{
 * type: 'object' }`.
 */
function standardJsonSchema({ '~standard': standard }: StandardSchema): JsonSchema {
  const { jsonSchema } = standard as { jsonSchema?: { input?: (options: { target: string }) => JsonSchema } } // some libraries lack it
  return jsonSchema?.input?.({ target: 'draft-2020-12' }) ?? { type: 'object' }
}

const toldKeywords = new Set(['type', 'format', 'minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems', 'required'])

function told(schema: JsonSchema): JsonSchema {
  const { properties, items } = schema as { properties?: Record<string, JsonSchema>; items?: JsonSchema } // according to JSON Schema
  return {
    ...Object.fromEntries(Object.entries(schema).filter(([keyword]) => toldKeywords.has(keyword))),
    ...(properties && { properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, told(field)])) }),
    ...(items && { items: told(items) }),
  }
}
