import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { ValidationError } from '../core/errors'
import { localized } from '../core/texts/phrase-book'
import { type LinkClick, linkPage, type PageAfter } from '../http/html/link-page'
import { passkeyOfForm } from '../http/html/passkey-form'
import { readerOf } from '../http/html/reader'
import { passwordText, validate } from '../http/input'
import { isReturnTo, locationOf } from '../http/return-to'
import type { Route } from '../http/routes'
import { sendSeeOther } from '../http/send'
import { forgetUsedInvitation } from '../invitations/carried'
import { leadToTasks } from '../login-tasks/lead-to-tasks'
import { passkeyLoginOptions } from '../passkeys/passkey-login'
import type { PresentedPasskey } from '../passkeys/verify-passkey'
import { passwordRefusal } from '../passwords/check-password'
import { routeRateLimit } from '../rate-limits/rate-limiter'
import { keepChallenge, leaveNotice } from '../sessions/cookies'
import { clearEndedCookies } from '../sessions/current-auth'
import { loginClient, setLoginCookies } from '../sessions/delivery'
import type { AnyLoginResult } from '../sessions/login'
import { activate, activateOnly, addressOfActivation, isOfOwner, lookAtActivation } from './activate'
import type { LinkProof } from './email-links/email-link'
import { readSignupReturn } from './email-verification/signup-binding'
import { type SignupOwnership, signupOwnershipOf, signupOwnershipOfForm } from './email-verification/signup-ownership'
import { loginLinkSummary } from './email-verification/verify-address'
import { lookAtReset, resetOnly, resetPassword } from './reset-password'

const passwords = Joi.object<{ new_password: string; confirm_password: string }>({
  new_password: passwordText().allow(''),
  confirm_password: passwordText().allow(''),
})

const passkeyResponse = Joi.object<{ credential?: string; challenge_token?: string }>({
  credential: Joi.string().allow('').optional(),
  challenge_token: Joi.string().allow('').optional(),
})

/**
 * In another browser than that of the sign-up, the page asks for the password or the passkey. With `pagesEnabled` it logs in the person
 * who signed up (same browser, the password or the passkey). Any other person must log in afterwards.
 */
export function activationPage(ctx: AuthContext): Route[] {
  const { pagesEnabled } = ctx.settings
  return linkPage(ctx, {
    path: '/activate/:token',
    summary: 'Activate an account',
    sharesPath: true,
    before: [routeRateLimit(ctx, 'activate')],
    form: 'activate',
    done: 'activated',
    look: async (token, { req, locale }) => {
      const evidence = await signupOwnershipOf(ctx, req)
      const asked = await lookAtActivation(ctx, token, evidence)
      const isSignIn = pagesEnabled && (asked !== null || (await isOfOwner(ctx, token, evidence)))
      const items = isSignIn ? await loginLinkSummary(ctx, req, await addressOfActivation(ctx, token), locale) : []
      const passkey = asked === 'passkey' ? passkeyLoginOptions(ctx, { isInPage: true }) : null
      return { password: asked === 'password' ? { canSkip: true } : null, passkey, items }
    },
    redeem: async (click) => {
      const { token, fields, locale, req, res } = click
      const passkey = readPasskey(fields)
      const evidence = passkey ? await signupOwnershipOf(ctx, req) : await signupOwnershipOfForm(ctx, req, fields, asksPassword(ctx, token))
      if (pagesEnabled && (passkey || (await isOfOwner(ctx, token, evidence)))) return activateAndEnter(ctx, click, { evidence, passkey })
      const { userId, resetLink } = await activateOnly(ctx, token, { evidence, passkey, byPage: true, locale })
      await clearEndedCookies(ctx, req, res)
      await forgetUsedInvitation(ctx, req, res, userId)
      return resetLink && { resetToken: resetLink.token }
    },
  })
}

/** Of the page's script. Null: the person has not used the passkey of the sign-up. */
function readPasskey(fields: unknown): PresentedPasskey | null {
  const { credential = '', challenge_token = '' } = validate(passkeyResponse, fields)
  return credential === '' ? null : passkeyOfForm({ credential, challenge_token })
}

/** Neither a link nor a code alone keeps the passkey of the sign-up, and a click alone must not remove it. */
export class PasskeyAskedError extends ValidationError {
  constructor() {
    super({ details: { errors: [{ path: 'credential', rule: 'any.required' }] }, explains: localized('link.passkey_missing') })
  }
}

/** Of a page. @throws PasskeyAskedError if the page must ask for the passkey of the sign-up */
export function asksPassword(ctx: AuthContext, proof: LinkProof) {
  return async (evidence: SignupOwnership): Promise<boolean> => {
    const asked = await lookAtActivation(ctx, proof, evidence)
    if (asked !== 'passkey') return asked === 'password'
    throw new PasskeyAskedError()
  }
}

async function activateAndEnter(
  ctx: AuthContext,
  { token, locale, req, res }: LinkClick,
  proof: { evidence: SignupOwnership; passkey: PresentedPasskey | null },
): Promise<PageAfter> {
  const result = await activate(ctx, token, loginClient(ctx, req), { ...proof, byPage: true, locale })
  await clearEndedCookies(ctx, req, res)
  await forgetUsedInvitation(ctx, req, res, result.userId)
  const returnTo = readSignupReturn(ctx, req)
  return entering(ctx, req, res, result, returnTo !== null && isReturnTo(ctx.settings, returnTo) ? returnTo : null)
}

/** With `pagesEnabled`, the page logs the person in, as the API route does. */
export function resetPage(ctx: AuthContext): Route[] {
  const { pagesEnabled } = ctx.settings
  return linkPage(ctx, {
    path: '/password-reset/:token',
    summary: 'Set a new password',
    before: [routeRateLimit(ctx, 'password_reset_confirm')],
    form: 'password_reset',
    done: 'password_changed',
    look: async (token, { req, locale }) => {
      const { email } = await lookAtReset(ctx, token)
      return pagesEnabled ? { items: await loginLinkSummary(ctx, req, email, locale) } : {}
    },
    redeem: async ({ token, fields, locale, req, res }) => {
      const input = { token, newPassword: readPassword(fields), locale, evidence: await signupOwnershipOf(ctx, req) }
      if (!pagesEnabled) {
        await resetOnly(ctx, input)
        await clearEndedCookies(ctx, req, res)
        return null
      }
      const result = await resetPassword(ctx, input, loginClient(ctx, req))
      await clearEndedCookies(ctx, req, res)
      leaveNotice(ctx, res, 'password_changed')
      return entering(ctx, req, res, result, null)
    },
  })
}

/** An account with a second factor goes to its page first. */
function entering(ctx: AuthContext, req: Request, res: Response, result: AnyLoginResult, returnTo: string | null): PageAfter {
  const reader = readerOf(ctx, req)
  return {
    answer() {
      if (result.kind === 'challenge') {
        keepChallenge(ctx, res, { mfaToken: result.mfaToken, returnTo })
        return sendSeeOther(res, reader.href('/mfa'))
      }
      if (result.kind === 'tasks') return leadToTasks(ctx, req, res, result, { returnTo, redirect: sendSeeOther })
      setLoginCookies(ctx, res, result)
      sendSeeOther(res, returnTo === null ? reader.href('/account') : locationOf(returnTo))
    },
  }
}

function readPassword(fields: unknown): string {
  const { new_password, confirm_password } = validate(passwords, fields)
  if (new_password !== confirm_password) throw passwordRefusal({ rule: 'mismatch' })
  return new_password
}
