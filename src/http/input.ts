import type { Request, RequestHandler, Response } from 'express'
import express from 'express'
import Joi from 'joi'
import { PayloadTooLargeError, UnsupportedMediaTypeError, ValidationError } from '../core/errors'
import { toAppError } from './error-envelope'

interface ValidateOptions {
  /** For fields without `presence`: `required` for the library's own, `optional` (Joi's default) for a host's schema. */
  presence?: 'required' | 'optional'
}

/** The error has only path and rule: Joi's message and context contain the submitted value, such as a password. */
export function validate<T>(schema: Joi.ObjectSchema<T>, value: unknown, { presence = 'required' }: ValidateOptions = {}): T {
  const result = schema.validate(value, {
    convert: false,
    abortEarly: true,
    stripUnknown: true,
    presence,
    errors: { render: false },
  })
  if (!result.error) return result.value
  const first = result.error.details[0]
  throw new ValidationError({ details: { errors: [{ path: first?.path.join('.') ?? '', rule: first?.type ?? 'invalid' }] } })
}

/** Not trimmed. PostgreSQL rejects NUL. All lone surrogates have the same bytes in UTF-8. */
export function text(maxLength: number): Joi.StringSchema {
  return Joi.string().max(maxLength).custom(wellFormed)
}

function wellFormed(value: string, helpers: Joi.CustomHelpers): string | Joi.ErrorReport {
  return value.includes('\0') || !value.isWellFormed() ? helpers.error('string.malformed') : value
}

/** Not trimmed, not cut, with NUL. Different passwords with lone surrogates would have the same bytes in UTF-8 and count as equal. */
export function passwordText(): Joi.StringSchema {
  return Joi.string().custom((value: string, helpers) => (value.isWellFormed() ? value : helpers.error('string.malformed')))
}

const limitBytes = 16 * 1024

// In milliseconds. A client that announces a body and does not send it gets a client error.
const deadlineMs = 10_000

const parseJson = express.json({ limit: limitBytes, inflate: false, strict: true, type: () => true })

/** `{}` if the request has no body. A body that the host has parsed must be a plain object. */
export async function readJsonBody(req: Request, res: Response): Promise<unknown> {
  const contentType = req.headers['content-type']
  if (contentType === undefined && !hasBody(req)) return {}
  if (contentType === undefined || !/^application\/json[\t ]*(?:;|$)/i.test(contentType)) throw new UnsupportedMediaTypeError()
  if (Number(req.headers['content-length']) > limitBytes) throw new PayloadTooLargeError()
  return readBody(req, res, parseJson)
}

// Without `extended`, every field is a string or a list of strings.
const parseForm = express.urlencoded({ limit: limitBytes, inflate: false, extended: false, type: () => true })

/** From a page without a script. */
export function isForm({ headers }: Request): boolean {
  return /^application\/x-www-form-urlencoded[\t ]*(?:;|$)/i.test(headers['content-type'] ?? '')
}

/** `{}` if the form has no fields. */
export async function readForm(req: Request, res: Response): Promise<unknown> {
  if (!isForm(req)) throw new UnsupportedMediaTypeError()
  if (Number(req.headers['content-length']) > limitBytes) throw new PayloadTooLargeError()
  return readBody(req, res, parseForm)
}

function readBody(req: Request, res: Response, parse: RequestHandler): Promise<unknown> | unknown {
  if (!hasBody(req)) return {}
  return req.readableDidRead ? alreadyParsed(req) : parseBody(req, res, parse)
}

function hasBody(req: Request): boolean {
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length']) > 0
}

function parseBody(req: Request, res: Response, parse: RequestHandler): Promise<unknown> {
  if (req.readable === false) throw incomplete() // the client has closed the connection; Express 4 would treat that as an error of the server
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      res.setHeader('Connection', 'close')
      reject(incomplete())
    }, deadlineMs)
    timer.unref()
    parse(req, res, (error?: unknown) => {
      clearTimeout(timer)
      if (error) reject(toAppError(error))
      else resolve(req.body)
    })
  })
}

function incomplete(): ValidationError {
  return new ValidationError({ details: { errors: [{ path: '', rule: 'incomplete' }] } })
}

/** The library's size limit still applies. Rejects a body in another form, such as a text or a Buffer. */
function alreadyParsed(req: Request): unknown {
  const body: unknown = req.body
  if (!isPlainObject(body)) throw new ValidationError({ details: { errors: [{ path: '', rule: 'object.base' }] } })
  if (!isMeasured(req) && sizeOf(body) > limitBytes) throw new PayloadTooLargeError()
  return body
}

/** The caller has already compared `Content-Length` with the limit. */
function isMeasured({ headers }: Request): boolean {
  return headers['content-length'] !== undefined && headers['content-encoding'] === undefined
}

/** If a body is nested too deep to serialize, returns a size above the limit. */
function sizeOf(body: object): number {
  try {
    return Buffer.byteLength(JSON.stringify(body))
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const field = 'refresh_token'

/** Names the session if the access token has no `sid`. A page of another site cannot send the header without our permission (CORS). */
export function readRefreshTokenHeader({ headers }: Request): string | null {
  const given = headers['x-refresh-token']
  return typeof given === 'string' && given !== '' ? given : null
}

/** Only if the schema has the field `refresh_token` and the body does not. */
export function takingRefreshTokenHeader(schema: Joi.ObjectSchema): (req: Request, body: unknown) => unknown {
  if (!hasField(schema)) return (_req, body) => body
  return (req, body) => {
    const token = readRefreshTokenHeader(req)
    const isMissing = typeof body === 'object' && body !== null && !(field in body)
    return token !== null && isMissing ? { ...body, [field]: token } : body
  }
}

function hasField(schema: Joi.ObjectSchema): boolean {
  try {
    return schema.extract(field) !== undefined
  } catch {
    return false // joi throws for an unknown key
  }
}
