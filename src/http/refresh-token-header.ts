import type { Request } from 'express'
import type Joi from 'joi'

const field = 'refresh_token'

/**
 * Returns the refresh token in the header `X-Refresh-Token`. The header names the session for requests whose access token has no `sid`. A
 * page of another site cannot send the header without our permission (CORS).
 */
export function readRefreshTokenHeader({ headers }: Request): string | null {
  const given = headers['x-refresh-token']
  return typeof given === 'string' && given !== '' ? given : null
}

/** Returns a function that adds the header's token to a body, if the schema has the field `refresh_token` and the body does not. */
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
