import type { Response } from 'express'

/**
 * Returns true if the library can still send a response by this object. It cannot if the host has already sent one, or if the request is not
 * Express's: the request of an upgrade has no response, and a `ServerResponse` that somebody made for it has no socket.
 */
export function isAnswerable(res: Partial<Response> | null | undefined): res is Response {
  if (typeof res?.status !== 'function' || typeof res.setHeader !== 'function' || res.headersSent) return false
  return res.socket !== null || res.destroyed === true // the socket of a client that hung up is gone too
}
