import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020'
import addFormats from 'ajv-formats'
import type { Request, RequestHandler, Response } from 'express'
import type { AuthRouter } from '../../src'

/** What a test reads of the document; the rest is for the linter. */
export interface OpenApi {
  info: { version: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object> }
}

export interface Operation {
  operationId: string
  requestBody?: { required: boolean; content: Record<string, { schema: object }> }
  responses: Record<string, { headers?: Record<string, { schema: object }>; content?: Record<string, { schema: object }> }>
}

export interface SeenAnswer {
  method: string
  /** Below the prefix, without the query. */
  path: string
  status: number
  headers: Record<string, unknown>
  body: string
  /** A form was sent. */
  isForm?: boolean
}

export interface AnswerCheck {
  /** In front of our router. */
  record: RequestHandler
  /** @throws with what is not declared */
  finish(): void
}

/** Answers wait for each other: a document takes as long to make as a test, and some tests ask nothing. */
const mostWaiting = 1_000

/**
 * Whatever a router answers in a test, its document declares (or it has none). `kind`: routers that have one in common have
 * one document; null for one of its own.
 */
export function checkAnswers(auth: AuthRouter, kind: string | null): AnswerCheck {
  const waiting: SeenAnswer[] = []
  const problems = new Set<string>()

  function checkWaiting(): void {
    if (waiting.length === 0) return
    const check = (kind !== null && checkers.get(kind)) || checkerFor(auth)
    if (kind !== null) checkers.set(kind, check)
    for (const answer of waiting.splice(0)) {
      const problem = check(answer)
      if (problem !== null) problems.add(problem)
    }
  }

  return {
    record(req, res, next) {
      const { method } = req
      const path = req.url.replace(/\?.*/s, '')
      const end = res.end.bind(res)
      const record = (chunk?: unknown, ...rest: unknown[]) => {
        const body = typeof chunk === 'string' || Buffer.isBuffer(chunk) ? chunk.toString() : ''
        const isForm = /^application\/x-www-form-urlencoded/.test(req.headers['content-type'] ?? '')
        waiting.push({ method, path, status: res.statusCode, headers: { ...res.getHeaders() }, body, isForm })
        if (waiting.length >= mostWaiting) checkWaiting()
        return (end as (...args: unknown[]) => typeof res)(chunk, ...rest)
      }
      res.end = record as typeof res.end // its overloads are passed on as they come
      next()
    },
    finish() {
      checkWaiting()
      if (problems.size > 0) throw new Error(`What /openapi.json does not say:\n${[...problems].join('\n')}`)
    },
  }
}

type Check = (answer: SeenAnswer) => string | null

/** By kind, and by the version of the document: two of one version say the same, and a checker takes long to make. */
const checkers = new Map<string, Check>()

function checkerFor(auth: AuthRouter): Check {
  const text = documentTextOf(auth)
  if (text === null) return () => null
  const document = JSON.parse(text) as OpenApi // our own
  const check = checkers.get(document.info.version) ?? checkerOf(document)
  checkers.set(document.info.version, check)
  return check
}

/** As the route would send it, without a server; null where it is not mounted. */
function documentTextOf({ stack }: Pick<AuthRouter, 'stack'>): string | null {
  const handler = stack.find(({ route }) => route?.path === '/openapi.json')?.route?.stack.at(-1)
  let text: string | null = null
  const end = (chunk: string) => {
    text = chunk
  }
  handler?.handle({} as Request, { setHeader() {}, end } as unknown as Response, () => undefined) // all that the handler uses
  return text
}

/** What of an answer the document does not say, as one sentence; null when it says it all. */
export function checkerOf(document: OpenApi): (answer: SeenAnswer) => string | null {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats(ajv)
  ajv.addSchema({ $id: 'document', components: closed(document.components) })
  const validators = new Map<object, ValidateFunction>()
  const find = finderOf(document)
  return (answer) => {
    const operation = find(answer)
    if (!operation) return null // the host's, or the answer to a method that is none
    const type = String(answer.headers['content-type'] ?? '').split(';')[0] ?? ''
    if (answer.isForm && !operation.requestBody?.content['application/x-www-form-urlencoded'] && type !== 'application/json') return null // a page's
    const name = `${answer.method} ${answer.path} ${answer.status}`
    const declared = operation.responses[answer.status] ?? operation.responses['default']
    if (!declared) return `${name} is not declared: ${answer.body.slice(0, 200)}`
    for (const header of Object.keys(declared.headers ?? {})) {
      if (answer.headers[header.toLowerCase()] === undefined && header === 'Location') return `${name} has no ${header}`
    }
    const content = declared.content?.[type]
    if (!content) return answer.body === '' && !declared.content ? null : `${name} is declared without ${type || 'an empty body'}`
    if (type !== 'application/json') return null
    const validate = validators.get(content.schema) ?? ajv.compile(closed(pointed(content.schema)))
    validators.set(content.schema, validate)
    return validate(JSON.parse(answer.body)) ? null : `${name}: ${ajv.errorsText(validate.errors)} in ${answer.body.slice(0, 300)}`
  }
}

export function finderOf(document: OpenApi): (answer: Pick<SeenAnswer, 'method' | 'path'>) => Operation | null {
  const paths = Object.entries(document.paths).map(([path, operations]) => ({
    pattern: new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
    isLiteral: !path.includes('{'),
    operations,
  }))
  // As the router has it: a literal path is no parameter.
  const sorted = [...paths.filter(({ isLiteral }) => isLiteral), ...paths.filter(({ isLiteral }) => !isLiteral)]
  return ({ method, path }) => sorted.find(({ pattern }) => pattern.test(path))?.operations[method.toLowerCase()] ?? null
}

/** No field that the document does not name; a reference beside other keywords stays open, since its own schema is closed. */
function closed<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(closed) as T // as it was, item by item
  if (typeof schema !== 'object' || schema === null) return schema
  const copy = Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, closed(value)]))
  const isShape = copy['type'] === 'object' && typeof copy['properties'] === 'object' && !('$ref' in copy)
  return (isShape ? { additionalProperties: false, ...copy } : copy) as T // as it was, keyword by keyword
}

/** References of the document, as the validator finds them. */
function pointed<T>(schema: T): T {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components')) as T // the same with longer names
}
