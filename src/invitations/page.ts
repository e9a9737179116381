import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { CsrfValidationFailedError, InvalidTokenError } from '../core/errors'
import { linkPage } from '../http/html/link-page'
import { readerOf } from '../http/html/reader'
import { sendPage } from '../http/html/send-page'
import { readForm } from '../http/input'
import type { Locale } from '../http/locale'
import type { Route } from '../http/routes'
import { refuseCrossSite, refusingCrossSite } from '../http/same-site'
import { sendSeeOther } from '../http/send'
import { routeRateLimit } from '../rate-limits/rate-limiter'
import type { InvitationRecord } from '../store/auth-store'
import { forgetInvitation, keepInvitation } from './carried'
import { findByToken, isOpen } from './invitation'
import { inviterOf } from './manage-invitations'

/**
 * In every delivery. GET writes nothing and sets no cookie, because mail scanners open links. Only the form sets the cookie, and only on
 * our own page, so another site cannot plant an invitation.
 */
export function invitationPages(ctx: AuthContext): Route[] {
  return [
    leaveRoute(ctx),
    ...linkPage(ctx, {
      path: '/invitations/:token',
      summary: 'An invitation',
      before: [routeRateLimit(ctx, 'invitation')],
      formTargets: targetsOf(ctx),
      refuses: [CsrfValidationFailedError, InvalidTokenError],
      form: 'invitation',
      done: 'invitation_kept',
      look: async (token, { locale }) => ({ items: await aboutInvitation(ctx, await requireOpen(ctx, token), locale) }),
      redeem: async ({ token, req, res }) => {
        refuseCrossSite(ctx, req)
        await requireOpen(ctx, token)
        keepInvitation(ctx, res, token)
        return goOn(ctx, req, res, 'invitation_kept')
      },
    }),
  ]
}

/** Browsers apply `form-action` also to the redirect after the form. */
function targetsOf({ settings: { loginUrl } }: AuthContext): string[] {
  return loginUrl !== null && URL.canParse(loginUrl) ? [new URL(loginUrl).origin] : []
}

/** One error for an unknown, used up, revoked and expired invitation. */
async function requireOpen(ctx: AuthContext, token: string): Promise<InvitationRecord> {
  const invitation = await findByToken(ctx, token)
  if (!invitation || !isOpen(invitation, ctx.now())) throw new InvalidTokenError()
  return invitation
}

/** Never the data of the host, which the invited person may not see. */
async function aboutInvitation(ctx: AuthContext, { email, createdBy, expiresAt }: InvitationRecord, locale: Locale): Promise<string[]> {
  const inviter = await inviterOf(ctx, createdBy)
  const day = new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' }).format(expiresAt)
  return [
    ...(inviter === null ? [] : [ctx.texts.say(locale, 'invitation.from', { name: inviter })]),
    ...(email === null ? [] : [ctx.texts.say(locale, 'invitation.for', { email })]),
    ctx.texts.say(locale, 'invitation.until', { day }),
  ]
}

function leaveRoute(ctx: AuthContext): Route {
  return {
    method: 'POST',
    path: '/invitations/leave',
    describes: { summary: 'Sign up without the invitation', answers: [], refuses: [CsrfValidationFailedError], isPage: true },
    before: [routeRateLimit(ctx, 'invitation'), refusingCrossSite((req) => refuseCrossSite(ctx, req))],
    handle: async (req, res) => {
      await readForm(req, res)
      forgetInvitation(ctx, res)
      goOn(ctx, req, res, 'invitation_left').answer()
    },
  }
}

/** To the sign-up page, or else to the host's page, or else a message. */
function goOn(ctx: AuthContext, req: Request, res: Response, message: 'invitation_kept' | 'invitation_left'): { answer: () => void } {
  const { pagesEnabled, localAccountsEnabled, signupEnabled, loginUrl } = ctx.settings
  const target = pagesEnabled && localAccountsEnabled && signupEnabled ? readerOf(ctx, req).href('/signup') : loginUrl
  return { answer: () => (target === null ? sendPage(ctx, req, res, 200, message) : sendSeeOther(res, target)) }
}
