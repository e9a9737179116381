import type { Request, Response } from 'express'
import express from 'express'
import { PayloadTooLargeError, UnsupportedMediaTypeError, ValidationError } from '../errors'
import { toAppError } from './error-envelope'

const limitBytes = 16 * 1024

const parse = express.json({ limit: limitBytes, inflate: false, strict: true, type: () => true })

/** The request's JSON object; `{}` when it has no body at all. What the host parsed before us is taken if it is a plain object. */
export async function readJsonBody(req: Request, res: Response): Promise<unknown> {
  const contentType = req.headers['content-type']
  if (contentType === undefined && !hasBody(req)) return {}
  if (contentType === undefined || !/^application\/json[\t ]*(?:;|$)/i.test(contentType)) throw new UnsupportedMediaTypeError()
  if (Number(req.headers['content-length']) > limitBytes) throw new PayloadTooLargeError()
  if (!hasBody(req)) return {}
  return req.readableDidRead ? alreadyParsed(req.body) : parseBody(req, res)
}

function hasBody(req: Request): boolean {
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length']) > 0
}

function parseBody(req: Request, res: Response): Promise<unknown> {
  return new Promise((resolve, reject) => {
    parse(req, res, (error?: unknown) => (error ? reject(toAppError(error)) : resolve(req.body)))
  })
}

/** A host's larger limit does not apply to us; a body it read in another form (text, a Buffer) is of no use to us. */
function alreadyParsed(body: unknown): unknown {
  if (!isPlainObject(body)) throw new ValidationError({ details: { errors: [{ path: '', rule: 'object.base' }] } })
  if (Buffer.byteLength(JSON.stringify(body)) > limitBytes) throw new PayloadTooLargeError()
  return body
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
