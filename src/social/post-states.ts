import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { constantTimeEqual } from '../core/constant-time-equal'
import { cookieNames } from '../http/cookies'
import { isPassportProvider, type Provider } from '../providers/passport-provider'
import { clearProofCookie, cookiePlaceOf, readProofCookie, setProofCookie } from '../sessions/proof-cookies'

const cookieName = 'oauth_state_post'

/** The provider's name in the option `providers`, the state and the expiry of an attempt. The expiry is in seconds since 1970. */
type PostState = readonly [provider: string, state: string, expiresAt: number]

export function answersByForm(client: Provider | undefined): boolean {
  return client !== undefined && !isPassportProvider(client) && client.responseMode === 'form_post'
}

/**
 * Stores the states of the attempts whose response comes by POST, in a separate cookie. A browser sends this cookie with another site's
 * form (`SameSite=None`). The cookie contains only the states. The attempts themselves stay in the Lax cookie, for the later GET.
 */
export function writePostStates(
  ctx: AuthContext,
  res: Response,
  attempts: readonly { readonly provider: string; readonly random: string; readonly expiresAt: number }[],
): void {
  const states = attempts
    .filter(({ provider }) => answersByForm(ctx.providers.get(provider)))
    .map(({ provider, random, expiresAt }): PostState => [provider, random, expiresAt])
  if (states.length > 0)
    setProofCookie(ctx, res, cookieName, JSON.stringify(states), ctx.settings.oauthStateTtlSeconds, { sameSite: 'none' })
  else if (res.req && cookieNames(res.req).includes(cookiePlaceOf(ctx, cookieName).fullName)) clearProofCookie(ctx, res, cookieName)
}

/**
 * Returns true if this browser began an attempt with this state at this provider. The cookie is reliable, because an attacker on another
 * subdomain can neither set nor sign it.
 */
export function isPostState(ctx: AuthContext, req: Request, provider: string, state: string | null): boolean {
  const value = readProofCookie(ctx, req, cookieName)
  const states = value === null ? [] : (JSON.parse(value) as PostState[]) // as `writePostStates` wrote it
  const now = Math.floor(ctx.now().getTime() / 1000)
  return states.some(([key, random, expiresAt]) => key === provider && expiresAt > now && constantTimeEqual(random, state))
}
