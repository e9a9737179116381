import type { Request } from 'express'
import type { AuthContext } from '../context'
import { onlyValue, queryParameter, queryValues } from '../http/query-parameter'
import { openText, sealText } from '../sealing'
import { answersByForm } from './post-states'

/** What a provider sent back with the browser (RFC 6749 section 4.1.2). */
export interface CallbackAnswer {
  /** As often as the parameter came. */
  values(name: string): string[]
  /** One string of a sane length; null when absent, repeated, empty or too long. */
  value(name: string, maxLength: number): string | null
  /** The provider answers by POST, so a `state` of the query counts for nothing. */
  readonly mustBePosted: boolean
}

const sealedSeconds = 60
/** Proxies often limit a request's first line to 8 KiB; sealed, a text is a third longer. */
export const longestAnswer = 4_500
const parameter = 'answer'

/**
 * Reads the answer of a callback from its query; of a provider that answers by POST, from what the POST sealed. There the query itself
 * can hold an `error` alone, because some providers refuse a request in the query.
 */
export function callbackAnswer(ctx: AuthContext, req: Request, provider: string): CallbackAnswer {
  if (!answersByForm(ctx.providers.get(provider))) return answerOf((name) => queryValues(req, name), false)
  const sealed = queryParameter(req, parameter, longestAnswer * 2)
  if (sealed === null) return answerOf((name) => (name.startsWith('error') ? queryValues(req, name) : []), true)
  const parameters = openAnswer(ctx, provider, sealed)
  return answerOf((name) => parameters.getAll(name), true)
}

function answerOf(values: (name: string) => string[], mustBePosted: boolean): CallbackAnswer {
  return { values, value: (name, maxLength) => onlyValue(values(name), maxLength), mustBePosted }
}

/**
 * Returns the query of the GET callback: the answer encrypted, for this provider and 60 seconds. It is used once because its state is.
 * Without the cookies of the browser that began, it is of no use.
 */
export function sealedQuery(ctx: AuthContext, provider: string, parameters: URLSearchParams): [name: string, value: string] {
  const text = JSON.stringify([epochSeconds(ctx) + sealedSeconds, parameters.toString()])
  return [parameter, sealText(keysOf(ctx), purposeOf(provider), text)]
}

/** No parameters where it is not ours, of another provider, or too old. */
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
