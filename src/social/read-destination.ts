import type { Request } from 'express'
import type { AuthContext } from '../context'
import type { Settings } from '../core/config/every-setting'
import { ValidationError } from '../core/errors'
import { type QueryParameter, string } from '../http/description'
import { text } from '../http/input'
import { queryValues } from '../http/locale'
import { longestReturnTo, readReturnTo } from '../http/return-to'
import { isPassportProvider, type Provider } from '../providers/passport-provider'
import type { Destination } from '../sessions/destination'
import { isCodeChallenge } from './app-redirect/exchange-code'

export interface DestinationBody {
  return_to?: string
  redirect_to?: string
}

export const destinationFields = { return_to: text(longestReturnTo).optional(), redirect_to: text(512).optional() } as const

export function destinationQuery({ tokenDelivery, appRedirects }: Settings): QueryParameter[] {
  const page = { name: 'return_to', description: 'Where the browser goes after the login.', schema: string }
  const app: QueryParameter[] = [
    { name: 'redirect_to', description: 'The app that gets the code: one of `appRedirects`.', schema: string },
    {
      name: 'code_challenge',
      description: 'Required with `redirect_to`: the PKCE code challenge of the app, method S256 (RFC 7636).',
      schema: string,
    },
  ]
  return [...(tokenDelivery === 'bearer' ? [] : [page]), ...(appRedirects.length === 0 ? [] : app)]
}

type Given = (name: string) => readonly string[]

/** @throws ValidationError */
export function destinationOfQuery(ctx: AuthContext, req: Request): Destination | null {
  const given: Given = (name) => queryValues(req, name)
  const destination = destinationOf(ctx, given)
  if (!destination || !('redirectTo' in destination)) return destination
  const [codeChallenge = '', ...others] = given('code_challenge')
  if (others.length > 0 || !isCodeChallenge(codeChallenge)) throw refusal('code_challenge')
  if (given('code_challenge_method').some((method) => method !== 'S256')) throw refusal('code_challenge_method')
  return { ...destination, codeChallenge }
}

/** @throws ValidationError */
export function destinationOfBody(ctx: AuthContext, body: DestinationBody): Destination | null {
  return destinationOf(ctx, (name) => {
    const value = body[name as keyof DestinationBody] // one of the two fields of `DestinationBody`
    return value === undefined ? [] : [value]
  })
}

function destinationOf({ settings }: AuthContext, given: Given): Destination | null {
  const returnTo = readReturnTo(settings, given('return_to'))
  const [redirectTo, ...others] = given('redirect_to')
  if (redirectTo === undefined) return returnTo === null ? null : { returnTo }
  if (returnTo !== null || others.length > 0 || !settings.appRedirects.includes(redirectTo)) throw refusal('redirect_to')
  return { redirectTo, codeChallenge: null }
}

function refusal(path: string): ValidationError {
  return new ValidationError({ details: { errors: [{ path, rule: 'any.only' }] } })
}

/** OpenID Connect Core section 3.1.2.1. @throws ValidationError unless it is sent once, with 1 to 320 visible characters */
export function readLoginHint(client: Provider, req: Request): string | null {
  if (isPassportProvider(client) || client.loginHint !== true) return null
  const [hint, ...others] = queryValues(req, 'login_hint')
  if (hint === undefined) return null
  if (others.length === 0 && /^[^\p{C}\p{Z}]{1,320}$/u.test(hint)) return hint
  throw new ValidationError({ details: { errors: [{ path: 'login_hint', rule: 'any.invalid' }] } })
}

export function loginHintQuery({ providers }: AuthContext): QueryParameter[] {
  const isUsed = [...providers.values()].some((provider) => !isPassportProvider(provider) && provider.loginHint === true)
  return isUsed
    ? [{ name: 'login_hint', description: 'The address or name of the person, for providers with the option `loginHint`.', schema: string }]
    : []
}
