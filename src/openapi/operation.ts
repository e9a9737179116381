import { InternalError, PayloadTooLargeError, ServiceUnavailableError, UnsupportedMediaTypeError, ValidationError } from '../errors'
import { type Answer, type Credential, descriptionOf, type JsonSchema, type Refusal } from '../http/description'
import type { Route } from '../http/routes'
import { hostsSchemaOf, jsonSchemaOf, type NamedSchemas } from './schemas'

export interface OperationContext {
  readonly named: NamedSchemas
  readonly tag: string
  /** Returns the security schemes of a credential. A request needs only one of these schemes. */
  readonly schemesOf: (credential: Credential) => readonly string[]
}

/**
 * Returns one OpenAPI operation for all routes with the same method and path. One of these routes can accept JSON, and another a page's
 * form.
 */
export function operationOf(ctx: OperationContext, lines: readonly [Route, ...Route[]]): object {
  const [{ method, path, describes }] = lines
  const bodies = lines.flatMap((line) => bodiesOf(ctx, line))
  const parameters = [...pathParameters(path), ...queryParameters(lines)]
  return {
    operationId: operationId(method, path),
    tags: [ctx.tag],
    summary: lines.map((line) => line.describes.summary).join('; '),
    ...(parameters.length > 0 && { parameters }),
    ...(bodies.length > 0 && { requestBody: requestBody(lines, bodies) }),
    security: securityOf(ctx, lines),
    responses: responsesOf(ctx, lines),
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
function queryParameters(lines: readonly Route[]): object[] {
  return lines.flatMap((line) =>
    (line.describes.query ?? []).map((parameter) => ({
      in: 'query',
      required: false,
      ...parameter,
      ...(parameter.schema['type'] === 'object' && { style: 'form', explode: true }),
    })),
  )
}

interface Body {
  readonly type: string
  readonly schema: JsonSchema
  /** True if a field is required. */
  readonly isRequired: boolean
}

function bodiesOf({ named }: OperationContext, { body, describes: { form, hostsBody } }: Route): Body[] {
  if (form) return [{ type: 'application/x-www-form-urlencoded', schema: jsonSchemaOf(form), isRequired: false }]
  if (!body) return []
  const own = jsonSchemaOf(body)
  const isRequired = ((own['required'] as unknown[] | undefined) ?? []).length > 0
  const schema = named.refer(own)
  return [{ type: 'application/json', schema: hostsBody ? { allOf: [schema, hostsSchemaOf(hostsBody)] } : schema, isRequired }]
}

function requestBody(lines: readonly Route[], bodies: readonly Body[]): object {
  return {
    required: bodies.length === lines.length && bodies.every(({ isRequired }) => isRequired),
    content: Object.fromEntries(bodies.map(({ type, schema }) => [type, { schema }])),
  }
}

function securityOf({ schemesOf }: OperationContext, lines: readonly Route[]): object[] {
  const asked = lines.flatMap(({ before = [], describes }) => [
    ...before.map((step) => descriptionOf(step)?.credential),
    describes.credential,
  ])
  const credentials = [...new Set(asked)].filter((credential) => credential !== undefined)
  return credentials.flatMap((credential) => schemesOf(credential).map((scheme) => ({ [scheme]: [] })))
}

function responsesOf(ctx: OperationContext, lines: readonly Route[]): object {
  const responses = new Map<number, Response>()
  for (const line of lines) {
    for (const answer of line.describes.answers) add(responses, answer.status, answerOf(ctx, answer))
    for (const [status, refusals] of byStatus(refusalsOf(line))) add(responses, status, refusalOf(line, status, refusals))
  }
  const sorted = Object.fromEntries([...responses].sort(([one], [other]) => one - other))
  return lines.some((line) => line.describes.hostRefuses) ? { ...sorted, default: hostsRefusal } : sorted
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

/**
 * Adds a response. If the status has a response already, joins the two. Two routes with the same path can use one status for a page and for
 * JSON.
 */
function add(responses: Map<number, Response>, status: number, response: Response): void {
  const known = responses.get(status)
  const description =
    known && known.description !== response.description ? `${known.description} ${response.description}` : response.description
  const content = { ...known?.content, ...response.content }
  responses.set(status, { ...known, ...response, description, ...(Object.keys(content).length > 0 && { content }) })
}

const html = { 'text/html': { schema: { type: 'string' } } }

function answerOf({ named }: OperationContext, { status, description, schema, isPage }: Answer): Response {
  return {
    description,
    ...(status === 302 && { headers: { Location: { schema: { type: 'string', format: 'uri-reference' } } } }),
    ...(isPage && { content: html }),
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
  return [...(line.describes.refuses ?? []), ...steps, ...reading, InternalError, ServiceUnavailableError]
}

function byStatus(refusals: readonly Refusal[]): Map<number, Refusal[]> {
  const sorted = new Map<number, Refusal[]>()
  for (const refusal of new Set(refusals)) sorted.set(refusal.status, [...(sorted.get(refusal.status) ?? []), refusal])
  return sorted
}

/**
 * Returns the response of an error. A route that shows pages responds with an HTML page to a GET and to a form post. Other routes, other
 * POST requests, and requests with a malformed path get the JSON error envelope.
 */
function refusalOf({ describes, method }: Route, status: number, refusals: readonly Refusal[]): Response {
  const envelope = { 'application/json': { schema: envelopeOf(refusals.map(({ code }) => code)) } }
  const isPage = describes.refusals === 'page'
  return {
    description: [...new Set(refusals.map(({ code, detail }) => `${code}: ${detail['en-US']}`))].join(' '),
    ...(headersOf[status] && { headers: headersOf[status] }),
    content: { ...(isPage && html), ...((!isPage || method === 'POST' || status === ValidationError.status) && envelope) },
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
