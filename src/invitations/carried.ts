import type { Request, Response } from 'express'
import type Joi from 'joi'
import type { AuthContext } from '../context'
import { InvitationRequiredError, ValidationError } from '../core/errors'
import { describeError } from '../core/logger'
import type { QueryParameter } from '../http/description'
import { text } from '../http/input'
import { queryValues } from '../http/locale'
import { clearProofCookie, readProofCookie, setProofCookie } from '../sessions/cookies'
import { findByToken, isOpen, requireInvitations } from './invitation'

const longestToken = 128

export interface InvitationField {
  invitation?: string
}

/** For the body of a route that creates accounts. */
export function invitationField({ settings }: Pick<AuthContext, 'settings'>): { invitation?: Joi.Schema } {
  return settings.invitationsEnabled ? { invitation: text(longestToken).min(1).optional() } : {}
}

/** What a route that creates accounts refuses. */
export function invitationRefusals({ settings }: Pick<AuthContext, 'settings'>) {
  return settings.invitationsEnabled ? [InvitationRequiredError] : []
}

export function invitationQuery({ settings }: Pick<AuthContext, 'settings'>): QueryParameter[] {
  if (!settings.invitationsEnabled) return []
  const schema = { type: 'string', minLength: 1, maxLength: longestToken }
  return [{ name: 'invitation', description: 'The token of an invitation, for a new account.', schema }]
}

/** The token of the request, or else that of the browser's cookie. Null: none, or invitations are off. */
export function invitationOf(ctx: AuthContext, req: Request, given: string | undefined): string | null {
  return ctx.settings.invitationsEnabled ? (given ?? readInvitation(ctx, req)) : null
}

/** Like `invitationOf`, from the query. @throws ValidationError for a repeated value, and for one that is empty or too long */
export function invitationOfQuery(ctx: AuthContext, req: Request): string | null {
  if (!ctx.settings.invitationsEnabled) return null
  const [given, ...others] = queryValues(req, 'invitation')
  const isWrong = given !== undefined && (given === '' || given.length > longestToken || !given.isWellFormed() || given.includes('\0'))
  if (isWrong || others.length > 0) throw new ValidationError({ details: { errors: [{ path: 'invitation', rule: 'any.invalid' }] } })
  return invitationOf(ctx, req, given)
}

const cookieName = 'invitation'
const aDay = 86_400

/** Only the form of the invitation's page sets it, so another site cannot plant an invitation. */
export function keepInvitation(ctx: AuthContext, res: Response, token: string): void {
  setProofCookie(ctx, res, cookieName, token, aDay)
}

export function readInvitation(ctx: AuthContext, req: Request): string | null {
  return readProofCookie(ctx, req, cookieName)
}

export function forgetInvitation(ctx: AuthContext, res: Response): void {
  clearProofCookie(ctx, res, cookieName)
}

/**
 * For a response after the account became active. Also forgets an invitation that nobody can use any more. Never throws, because a failure
 * must not lose the response: then the cookie stays.
 */
export async function forgetUsedInvitation(ctx: AuthContext, req: Request, res: Response, userId: string): Promise<void> {
  const token = ctx.settings.invitationsEnabled ? readInvitation(ctx, req) : null
  if (token === null) return
  try {
    const invitation = await findByToken(ctx, token)
    const isOver = invitation === null || !isOpen(invitation, ctx.now())
    if (isOver || (await requireInvitations(ctx).invitationUses.isUsedBy(invitation.id, userId))) forgetInvitation(ctx, res)
  } catch (error) {
    ctx.logger.error({ error: describeError(error) }, 'doorward: the invitation of a browser could not be read, so its cookie stays')
  }
}
