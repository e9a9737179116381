import { InternalError, PayloadTooLargeError, ServiceUnavailableError, UnsupportedMediaTypeError, ValidationError } from '../../core/errors'
import { type Answer, type Credential, type Description, descriptionOf, type JsonSchema, type Refusal } from '../../http/description'
import type { Route } from '../../http/routes'
import { hostsSchemaOf, jsonSchemaOf, type NamedSchemas, needsAField, withOneOf } from './schemas'

export interface OperationContext {
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
  return [...(line.describes.refuses ?? []), ...steps, ...reading, InternalError, ServiceUnavailableError]
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
