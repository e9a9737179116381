import type { Request } from 'express'
import type { AuthContext } from '../context'
import { openText, sealText } from '../core/sealing'
import { onlyQueryValue, queryParameter, queryValues } from '../http/query-parameter'
import { answersByForm } from './post-states'

/** A provider's response in the callback (RFC 6749 section 4.1.2). */
export interface CallbackAnswer {
  /** Returns every value of the parameter. */
  values(name: string): string[]
  /** Returns the only value of the parameter. Null if the parameter is absent, repeated, empty or too long. */
  value(name: string, maxLength: number): string | null
  /** True: the provider responds by POST, so doorward ignores a `state` in the query. */
  readonly mustBePosted: boolean
}

const sealedSeconds = 60
/**
 * The maximum length of a response. The limit is low, because the response becomes part of the URL of the GET callback. Proxies often limit
 * a request's first line to 8 KiB, and encryption makes a text a third longer.
 */
export const longestAnswer = 4_500
const parameter = 'answer'

/**
 * Reads the response of a callback from its query. If the provider responds by POST, reads the data that the POST route sealed. Without
 * sealed data, reads only the `error` parameters of the query, because some of these providers send a refusal in the query.
 */
export function callbackAnswer(ctx: AuthContext, req: Request, provider: string): CallbackAnswer {
  if (!answersByForm(ctx.providers.get(provider))) return answerOf((name) => queryValues(req, name), false)
  const sealed = queryParameter(req, parameter, longestAnswer * 2)
  if (sealed === null) return answerOf((name) => (name.startsWith('error') ? queryValues(req, name) : []), true)
  const parameters = openAnswer(ctx, provider, sealed)
  return answerOf((name) => parameters.getAll(name), true)
}

function answerOf(values: (name: string) => string[], mustBePosted: boolean): CallbackAnswer {
  return { values, value: (name, maxLength) => onlyQueryValue(values(name), maxLength), mustBePosted }
}

/**
 * Returns the query parameter of the GET callback: the encrypted response. The parameter is valid only for this provider, and for 60
 * seconds. The parameter works once, because the state in the response works once. The parameter is useless without the cookies of the
 * browser that began the login.
 */
export function sealedQuery(ctx: AuthContext, provider: string, parameters: URLSearchParams): [name: string, value: string] {
  const text = JSON.stringify([epochSeconds(ctx) + sealedSeconds, parameters.toString()])
  return [parameter, sealText(keysOf(ctx), purposeOf(provider), text)]
}

/** Decrypts the response. Returns no parameters if the text is not ours, is of another provider, or is too old. */
function openAnswer(ctx: AuthContext, provider: string, sealed: string): URLSearchParams {
  const text = openText(keysOf(ctx), purposeOf(provider), sealed)
  const [end, parameters] = text === null ? [0, ''] : (JSON.parse(text) as [number, string]) // as `sealedQuery` wrote it
  return new URLSearchParams(end > epochSeconds(ctx) ? parameters : '')
}

function purposeOf(provider: string): string {
  return `form answer of ${provider}`
}

function keysOf({ keys }: AuthContext): Buffer[] {
  return keys['form-answer'].map((key) => key.export())
}

function epochSeconds(ctx: AuthContext): number {
  return Math.floor(ctx.now().getTime() / 1000)
}
