import type { Request } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../../context'
import { InvalidTokenError, InvitationRequiredError, ValidationError } from '../../core/errors'
import { bodyWithFixedResponseTime } from '../../http/fixed-response-time'
import { text } from '../../http/input'
import { type Route, withBody } from '../../http/routes'
import type { LinkCodePurpose } from '../../store/auth-store'
import { isCodeOf, type LinkProof, mostTries } from '../email-links/email-link'
import type { SignupOwnership } from '../email-verification/signup-ownership'
import { countCode } from './code-limit'
import { codesOf, hasMailedCodes, type KeptRequest, keptInBrowser, readCodeToken } from './code-request'

export interface LinkOrCodeBody {
  token?: string
  code?: string
  request_token?: string
}

/** While mails have no codes, a body needs the token. */
export function linkOrCode(ctx: Pick<AuthContext, 'settings'>): Joi.SchemaMap {
  if (!hasMailedCodes(ctx)) return { token: text(512) }
  // Any string counts as a wrong code, not as a malformed request.
  return { token: text(512).optional(), code: Joi.string().allow('').optional(), request_token: text(4096).optional() }
}

/** @param summary ends in `link` */
export function withCode(ctx: Pick<AuthContext, 'settings'>, summary: string): string {
  return hasMailedCodes(ctx) ? `${summary} or code` : summary
}

/** For the description of a route with `linkOrCode`. */
export function needsLinkOrCode(ctx: Pick<AuthContext, 'settings'>): { needsOneOf?: readonly string[] } {
  return hasMailedCodes(ctx) ? { needsOneOf: ['token', 'code'] } : {}
}

/** The token of a mailed link, or a code with its request. */
export interface Presented {
  readonly purpose: LinkCodePurpose
  readonly proof: { readonly token: string } | { readonly code: string }
  /** Null: the request names none. */
  readonly kept: KeptRequest | null
}

/** A `request_token` alone names the request. Without it, the browser's cookie does. @throws ValidationError */
export function presentedBy(
  ctx: AuthContext,
  req: Request,
  purpose: LinkCodePurpose,
  { token, code, request_token: requestToken }: LinkOrCodeBody,
): Presented {
  const kept = requestToken === undefined ? null : readCodeToken(ctx, requestToken, purpose)
  if (token !== undefined && code === undefined) return { purpose, proof: { token }, kept }
  if (code === undefined || token !== undefined)
    throw new ValidationError({ details: { errors: [{ path: 'token', rule: code === undefined ? 'object.missing' : 'object.xor' }] } })
  return { purpose, proof: { code }, kept: requestToken === undefined ? keptInBrowser(ctx, req, purpose) : kept }
}

/** What a host passes instead of a link's token. */
export interface CodeProof {
  /** Eight digits. */
  readonly code: string
  readonly requestToken: string
}

export function presentedByHost(ctx: AuthContext, purpose: LinkCodePurpose, proof: string | CodeProof): Presented {
  if (typeof proof === 'string') return { purpose, proof: { token: proof }, kept: null }
  return { purpose, proof, kept: readCodeToken(ctx, proof.requestToken, purpose) }
}

/** The `request_token` of a sign-up counts as its `signup_token`. */
export function withSignup(evidence: SignupOwnership, { kept }: Presented): SignupOwnership {
  return kept?.signup === undefined ? evidence : { ...evidence, bindings: [...(evidence.bindings ?? []), kept.signup] }
}

/**
 * Does `work` with the link of a right code, or with the given token. If `work` refuses the password by the policy, or the invitation is
 * over, the try is given back. Not in a transaction: the try stays counted.
 * @throws InvalidTokenError
 */
export async function redeem<T>(ctx: AuthContext, presented: Presented, work: (proof: LinkProof) => Promise<T>): Promise<T> {
  const { purpose, proof, kept } = presented
  if ('token' in proof) return work(proof.token)
  const tried = await tryCode(ctx, purpose, kept, proof.code)
  try {
    return await work(tried)
  } catch (error) {
    if (error instanceof ValidationError || error instanceof InvitationRequiredError) await codesOf(ctx).uncountTry?.(tried.id)
    throw error
  }
}

/** Counts the try, then compares the code: at most five are compared, even in parallel. The link decides the rest. */
async function tryCode(
  ctx: AuthContext,
  purpose: LinkCodePurpose,
  kept: KeptRequest | null,
  code: string,
): Promise<{ id: string; tokenHash: string }> {
  const row = kept && hasMailedCodes(ctx) ? await codesOf(ctx).countTry(kept.id, mostTries, ctx.now()) : null
  if (row?.purpose !== purpose || row.tokenHash === null) throw new InvalidTokenError()
  const counted = await countCode(ctx, row)
  if (!counted || !isCodeOf(ctx, row, code)) throw new InvalidTokenError()
  await counted.release()
  return { id: row.id, tokenHash: row.tokenHash }
}

/** With codes, the time of a refusal must not show whether the request's address has an account. */
export function redeemingRoute<T>(
  ctx: AuthContext,
  route: Omit<Route, 'handle' | 'body'> & {
    body: Joi.ObjectSchema<T>
    handle: (ctx: AuthContext, req: Request, res: Parameters<Route['handle']>[1], body: T) => Promise<void>
  },
): Route {
  if (hasMailedCodes(ctx)) return bodyWithFixedResponseTime(ctx, route)
  return withBody({ ...route, handle: (req, res, body) => route.handle(ctx, req, res, body) })
}
