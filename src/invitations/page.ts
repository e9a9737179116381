import type { Request, Response } from 'express'
import Joi from 'joi'
import { sessionOfRequest } from '../accounts/email-verification/signup-ownership'
import type { AuthContext } from '../context'
import { CsrfValidationFailedError, InvalidTokenError, InvitationRequiredError, ValidationError } from '../core/errors'
import { localized } from '../core/texts/phrase-book'
import { formOf } from '../http/html/form-of'
import { type FormNeeds, linkPage, type PageAfter } from '../http/html/link-page'
import { readerOf } from '../http/html/reader'
import { sendPage } from '../http/html/send-page'
import { readForm, validate } from '../http/input'
import type { Locale } from '../http/locale'
import type { Route } from '../http/routes'
import { refuseCrossSite, refusingCrossSite } from '../http/same-site'
import { sendSeeOther } from '../http/send'
import { routeRateLimit } from '../rate-limits/rate-limiter'
import type { InvitationRecord, UserRecord } from '../store/auth-store'
import { forgetInvitation, forgetUsedInvitation, keepInvitation } from './carried'
import { findByToken, isOpen } from './invitation'
import { inviterOf } from './manage-invitations'
import { redeemInvitation } from './redeem-invitation'

/**
 * In every delivery. GET writes nothing and sets no cookie, because mail scanners open links. Only the form sets the cookie, and only on
 * our own page, so another site cannot plant an invitation. For a signed-in person, the form uses the invitation with that account.
 */
export function invitationPages(ctx: AuthContext): Route[] {
  return [
    leaveRoute(ctx),
    ...linkPage(ctx, {
      path: '/invitations/:token',
      summary: 'An invitation',
      before: [routeRateLimit(ctx, 'invitation')],
      formTargets: targetsOf(ctx),
      refuses: [CsrfValidationFailedError, InvalidTokenError, InvitationRequiredError],
      form: 'invitation',
      done: 'invitation_kept',
      look: async (token, { locale, req }) => needsOf(ctx, await requireOpen(ctx, token), await signedIn(ctx, req), locale),
      redeem: async ({ token, fields, req, res }) => {
        refuseCrossSite(ctx, req)
        const { form_of: owner } = validate(ownerField, fields)
        if (owner !== undefined) return useHere(ctx, req, res, { token, owner })
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

const ownerField = Joi.object<{ form_of?: string }>({ form_of: Joi.string().allow('').optional() })

/** Reads only: a GET must not renew the session. */
async function signedIn(ctx: AuthContext, req: Request): Promise<UserRecord | null> {
  const session = await sessionOfRequest(ctx, req)
  return session && ctx.store.users.find(session.userId)
}

async function needsOf(ctx: AuthContext, invitation: InvitationRecord, user: UserRecord | null, locale: Locale): Promise<FormNeeds> {
  const items = await aboutInvitation(ctx, invitation, locale)
  if (user === null) return { items }
  if (invitation.email === null || invitation.email === user.email) return { items, account: { email: user.email, formOf: formOf(user) } }
  return { items: [...items, ctx.texts.say(locale, 'invitation.other_account', { email: user.email })] }
}

/** @throws InvalidTokenError as for every invitation that is not open, InvitationRequiredError if the account's address is not verified */
async function useHere(
  ctx: AuthContext,
  req: Request,
  res: Response,
  { token, owner }: { token: string; owner: string },
): Promise<PageAfter> {
  const user = await signedIn(ctx, req)
  if (user === null || owner !== formOf(user))
    throw new ValidationError({
      details: { errors: [{ path: 'form_of', rule: 'any.only' }] },
      explains: localized('invitation.account_changed'),
    })
  try {
    await redeemInvitation(ctx, user.id, token)
  } catch (error) {
    if (error instanceof InvitationRequiredError) await requireOpen(ctx, token)
    throw error
  }
  await forgetUsedInvitation(ctx, req, res, user.id)
  return { page: 'invitation_used', hasLoginLink: false }
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
