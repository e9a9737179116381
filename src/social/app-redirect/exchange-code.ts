import { createHash } from 'node:crypto'
import Joi from 'joi'
import { type AuthContext, transaction } from '../../context'
import { clientOf } from '../../core/client-key'
import { AppError, OAuthCodeInvalidError } from '../../core/errors'
import { hashOpaqueToken, isOpaqueToken } from '../../core/opaque-token'
import { text } from '../../http/input'
import type { Route } from '../../http/routes'
import { readTaskToken } from '../../login-tasks/task-token'
import { askTasks } from '../../login-tasks/tasks-owed'
import { consumeChallenge, isAccountDigest, readChallenge } from '../../sessions/challenge'
import { loginAnswer, loginClientWith, sendLogin } from '../../sessions/delivery'
import { announceFailedLogin, type LoginAttempt, newLoginAttempt } from '../../sessions/devices/login-limits'
import { after } from '../../sessions/find-session'
import type { LoginClient, LoginResult } from '../../sessions/login'
import { publicOperation } from '../../sessions/operation'
import { type DecidedLogin, finishLogin, isRefused, isUndecided, startLogin } from '../../sessions/start-login'
import { DuplicateRecordError, type UserTokenRecord } from '../../store/auth-store'
import { type Grant, readGrant } from './issue-code'

interface ExchangeBody {
  code: string
  code_verifier: string
}

/** Tokens only in the body. Reads and sets no cookie, so requests from other sites do no harm. */
export function exchangeRoutes(ctx: AuthContext): Route[] {
  if (ctx.settings.appRedirects.length === 0) return []
  return [
    publicOperation(ctx, {
      method: 'POST',
      path: '/oauth/exchange',
      summary: 'Finish the login of an app: exchange the code for tokens',
      answers: [loginAnswer(ctx, 'bearer')],
      refuses: [OAuthCodeInvalidError],
      delivers: 'login',
      limit: 'oauth_exchange',
      body: Joi.object<ExchangeBody>({ code: text(512), code_verifier: text(512) }),
      handle: async (req, res, { code, code_verifier: codeVerifier }) => {
        const client = loginClientWith(ctx, req, 'tokens')
        const result = await exchangeCode(ctx, { code, codeVerifier }, client, newLoginAttempt(clientOf(req)))
        sendLogin(ctx, res, result, 'bearer')
      },
    }),
  ]
}

export interface OAuthCodeExchange {
  /** The code in the URL that opened the app. */
  code: string
  /** The app's secret. The app sent the challenge of this secret together with `redirect_to`. */
  codeVerifier: string
}

/**
 * A refused exchange also uses the code up. A second exchange revokes the session of the first.
 * @throws OAuthCodeInvalidError (unknown, used or expired code; wrong verifier; changed account); the errors of `finishLogin` use the code
 * up too
 * @see RFC 6749 section 4.1.2, RFC 7636 section 4.6
 */
export async function exchangeCode(
  ctx: AuthContext,
  { code, codeVerifier }: OAuthCodeExchange,
  client: LoginClient,
  attempt: LoginAttempt = newLoginAttempt(null),
): Promise<LoginResult> {
  const row = isOpaqueToken(code) ? await ctx.store.userTokens.find(hashOpaqueToken(code)) : null
  attempt.userId = row?.userId ?? null
  const exchanged = row?.purpose === 'OAUTH_CODE' && (await exchangeOnce(ctx, row, { code, codeVerifier }, client))
  if (!exchanged) {
    if (isOpaqueToken(code)) await endWhatItGave(ctx, code)
    announceFailedLogin(ctx, attempt, { reason: OAuthCodeInvalidError.code })
    throw new OAuthCodeInvalidError()
  }
  const { begun, provider } = exchanged
  // The login in the browser has already announced the challenge.
  if (begun.result.kind === 'challenge') return begun.result
  try {
    return (await finishLogin(ctx, begun, provider === null ? {} : { provider })) as LoginResult // the client gets tokens
  } catch (error) {
    if (error instanceof AppError) announceFailedLogin(ctx, attempt, { reason: error.code })
    throw error
  }
}

/** Null for a refusal, which uses the code up too. Locks the user's row first, like every operation that revokes codes. */
async function exchangeOnce(
  ctx: AuthContext,
  row: UserTokenRecord,
  { code, codeVerifier }: OAuthCodeExchange,
  client: LoginClient,
): Promise<{ begun: DecidedLogin; provider: string | null } | null> {
  const { userId, tokenHash } = row
  const granted = readGrant(row)
  const isRight = row.usedAt === null && row.expiresAt > ctx.now() && isOfGrant(granted, codeVerifier)
  const seen = ctx.loginTasks && isRight ? await ctx.store.users.find(userId) : null
  const asked = seen ? await askTasks(ctx, seen, granted) : ctx
  return transaction(asked, async (ctx) => {
    const user = await ctx.store.users.lock(userId)
    const taken = await ctx.store.userTokens.consume(tokenHash, 'OAUTH_CODE', ctx.now())
    const grant = taken && readGrant(taken)
    if (!user?.isActive || !grant || !isAccountDigest(ctx.keys.state, user, grant.digest) || !isOfGrant(grant, codeVerifier)) return null
    const { amr, provider, providerSid, isYoung = false, passwordRequired } = grant
    const begun = await startLogin(ctx, client, user, {
      amr,
      provider,
      providerSid,
      isYoung,
      ...(passwordRequired && { passwordRequired }),
    })
    if (isUndecided(begun) || isRefused(begun)) return null // the account changed while the host was asked
    await leaveReceipt(ctx, code, begun)
    return { begun, provider }
  })
}

function isOfGrant({ codeChallenge }: Grant, codeVerifier: string): boolean {
  return isCodeVerifier(codeVerifier) && codeChallengeOf(codeVerifier) === codeChallenge
}

/** Seconds in which a second use of a code is recognized. */
const receiptSeconds = 86_400

interface Receipt {
  readonly sessionId?: string | null
  /** A second-factor step, or the tasks of the login. */
  readonly challenge?: { readonly idHash: string; readonly endsAt: number }
}

/** Call it in the transaction of the exchange. The row counts as used. Only a client that has the code can find it. */
async function leaveReceipt(ctx: AuthContext, code: string, begun: DecidedLogin): Promise<void> {
  const now = ctx.now()
  await ctx.store.userTokens.insert({
    userId: begun.result.userId,
    tokenHash: receiptHash(code),
    purpose: 'OAUTH_CODE',
    payload: JSON.stringify(receiptOf(ctx, begun)),
    expiresAt: after(now, receiptSeconds),
    usedAt: now,
    createdAt: now,
  })
}

/** A second use shows that another client may have the code. */
async function endWhatItGave(ctx: AuthContext, code: string): Promise<void> {
  const row = await ctx.store.userTokens.find(receiptHash(code))
  if (!row?.payload) return
  const { sessionId, challenge } = JSON.parse(row.payload) as Receipt // as `leaveReceipt` wrote it
  const { userId } = row
  if (challenge) await endChallenge(ctx, { userId, idHash: challenge.idHash, expiresAt: new Date(challenge.endsAt) })
  if (!sessionId || !(await ctx.store.sessions?.revoke({ id: sessionId }, ctx.now()))) return
  ctx.events.emit('session.revoked', { userId, count: 1, reason: 'code_reused' })
}

async function endChallenge(ctx: AuthContext, challenge: Parameters<typeof consumeChallenge>[1]): Promise<void> {
  try {
    await consumeChallenge(ctx, challenge)
  } catch (error) {
    if (!(error instanceof DuplicateRecordError)) throw error // the person already finished the login, with the second factor
  }
}

function receiptOf(ctx: AuthContext, { result, access }: DecidedLogin): Receipt {
  if (result.kind === 'session') return { sessionId: access?.sessionId ?? null }
  if (result.kind === 'tasks') {
    const { idHash, tasks } = readTaskToken(ctx, result.taskToken)
    return { challenge: { idHash, endsAt: tasks.endsAt.getTime() } }
  }
  const { idHash, expiresAt } = readChallenge(ctx, result.mfaToken)
  return { challenge: { idHash, endsAt: expiresAt.getTime() } }
}

function receiptHash(code: string): string {
  return hashOpaqueToken(`receipt of ${code}`)
}

/** S256 (RFC 7636 section 4.2). */
export function codeChallengeOf(codeVerifier: string): string {
  return createHash('sha256').update(codeVerifier).digest('base64url')
}

/** RFC 7636 section 4.1. */
function isCodeVerifier(text: string): boolean {
  return /^[\w.~-]{43,128}$/.test(text)
}

/** A SHA-256 in base64url. */
export function isCodeChallenge(text: string): boolean {
  return /^[\w-]{43}$/.test(text)
}
