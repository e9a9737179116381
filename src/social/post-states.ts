import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { cookieNames } from '../http/cookies'
import { isPassportProvider, type Provider } from '../providers/passport-provider'
import { clearProofCookie, placeOf, readProofCookie, setProofCookie } from '../session/proof-cookies'
import { sameText } from './same-text'
import type { Attempt } from './state-cookie'

const cookieName = 'oauth_state_post'

/** Of an attempt: the registration key, the state, and its end in seconds since 1970. */
type PostState = readonly [provider: string, state: string, expiresAt: number]

/** Whether the provider's answer comes by POST. */
export function answersByForm(client: Provider | undefined): boolean {
  return client !== undefined && !isPassportProvider(client) && client.responseMode === 'form_post'
}

/**
 * Keeps the states of the attempts whose answer comes by POST in a cookie of their own. A browser brings it along with another site's form
 * (`SameSite=None`), and nothing but the state is in there: the attempt itself stays in the Lax cookie, for the GET that follows.
 */
export function writePostStates(ctx: AuthContext, res: Response, attempts: readonly Attempt[]): void {
  const states = attempts
    .filter(({ provider }) => answersByForm(ctx.providers.get(provider)))
    .map(({ provider, random, expiresAt }): PostState => [provider, random, expiresAt])
  if (states.length > 0)
    setProofCookie(ctx, res, cookieName, JSON.stringify(states), ctx.settings.oauthStateTtlSeconds, { sameSite: 'none' })
  else if (res.req && cookieNames(res.req).includes(placeOf(ctx, cookieName).fullName)) clearProofCookie(ctx, res, cookieName)
}

/** Whether this browser began an attempt with this state at this provider. Another subdomain cannot set the cookie, and cannot sign it. */
export function isPostState(ctx: AuthContext, req: Request, provider: string, state: string | null): boolean {
  const value = readProofCookie(ctx, req, cookieName)
  const states = value === null ? [] : (JSON.parse(value) as PostState[]) // as `writePostStates` wrote it
  const now = Math.floor(ctx.now().getTime() / 1000)
  return states.some(([key, random, expiresAt]) => key === provider && expiresAt > now && sameText(random, state))
}
