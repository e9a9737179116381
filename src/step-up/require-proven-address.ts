import type { RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { EmailNotVerifiedError } from '../errors'
import { describeStep } from '../http/description'
import { step } from '../http/routes'
import type { UserRecord } from '../store/auth-store'
import { requestSessionOf } from './fresh-session'

/**
 * Refuses to build a way in on an address that nobody has proven: somebody else may have registered it, and the first proof by its owner
 * would have to remove what was built. Only where the account can prove its address: there are a mailer and the column.
 * @throws EmailNotVerifiedError, whose details say which route helps
 */
export function requireProvenAddress(ctx: AuthContext, user: UserRecord): void {
  const canProve = ctx.postman !== null && ctx.store.users.fields.has('emailVerifiedAt')
  if (!canProve || user.emailVerifiedAt !== null) return
  throw new EmailNotVerifiedError({ details: { request: `${ctx.prefix}/email-verify/request` }, explains })
}

const explains = {
  'en-US': 'Confirm your email address first: POST /email-verify/request sends you a mail.',
  'pt-BR': 'Confirme seu e-mail primeiro: POST /email-verify/request envia uma mensagem para você.',
} as const

/** The same as a step of a route, behind `aliveSession` and before `freshSession`. */
export function provenAddress(ctx: AuthContext): RequestHandler {
  const check = step((req) => requireProvenAddress(ctx, requestSessionOf(req).user))
  return describeStep(check, { refuses: [EmailNotVerifiedError] })
}
