import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { AuthContext } from '../context'
import { isAuthMethod } from '../core/amr'
import { TaskTokenInvalidError } from '../core/errors'
import { hashOpaqueToken } from '../core/opaque-token'
import { accountDigest, epochSeconds, isAccountDigest, readPrivateToken, signPrivateToken } from '../sessions/challenge'
import type { Destination } from '../sessions/destination'
import { after } from '../sessions/find-session'
import type { Login, LoginProgress } from '../sessions/login'
import { DuplicateRecordError, type UserRecord } from '../store/auth-store'

/** The life of all tokens of one login. No step extends it. */
export const tasksSeconds = 900

/** A login that proved its person and still owes something. */
export interface TaskLogin extends Login {
  readonly userId: string
  readonly tasks: LoginProgress
  /** What is still owed, in order. */
  readonly owed: readonly string[]
  /** `accountDigest` when the token was made. */
  readonly digest: string
  /** Milliseconds since 1970. A revocation of all sessions at this time, or later, ends the login. */
  readonly issuedAt: number
  /** Unique among the user's tokens, so a token is good for one step. */
  readonly idHash: string
}

export function newProgress(ctx: AuthContext): LoginProgress {
  return { id: randomUUID(), done: [], endsAt: after(ctx.now(), tasksSeconds), isDeviceSettled: false, codeId: null }
}

/** @param user as stored, because a step compares the token with the stored row */
export function signTaskToken(ctx: AuthContext, user: UserRecord, login: TaskLoginToSign): string {
  const {
    amr,
    provider,
    providerSid,
    isYoung = false,
    destination = null,
    isPersistent = true,
    isReset = false,
    passwordRequired = false,
    isFromHost = false,
    skipsSecondFactor = false,
    trustsDevice,
    tasks,
    owed,
    issuedAt,
  } = login
  const [key] = ctx.keys.tasks
  return signPrivateToken(key, {
    amr,
    dig: accountDigest(key, user),
    don: tasks.done,
    ...(destination && { dst: destination }),
    ...(tasks.codeId !== null && { cid: tasks.codeId }),
    exp: epochSeconds(tasks.endsAt),
    ...(isFromHost && { hst: true }),
    iat: epochSeconds(ctx.now()),
    iss_ms: issuedAt,
    jti: randomBytes(16).toString('base64url'),
    lid: tasks.id,
    owe: owed,
    ...(provider !== null && { prv: provider }),
    ...(providerSid !== undefined && { psd: providerSid }),
    ...(passwordRequired && { pwr: true }),
    ...(isReset && { rst: true }),
    ...(tasks.isDeviceSettled && { set: true }),
    ...(skipsSecondFactor && { skp: true }),
    ...(isYoung && { yng: true }),
    sub: user.id,
    ...(!isPersistent && { tmp: true }),
    ...(trustsDevice !== undefined && { trs: trustsDevice }),
    typ: 'tasks',
  })
}

export type TaskLoginToSign = Login & Pick<TaskLogin, 'tasks' | 'owed' | 'issuedAt'>

/** @throws TaskTokenInvalidError */
export function readTaskToken(ctx: Pick<AuthContext, 'keys' | 'now'>, token: string): TaskLogin {
  const claims = readPrivateToken(ctx.keys.tasks, token, { typ: 'tasks', at: ctx.now() })
  if (!claims) throw new TaskTokenInvalidError()
  const {
    amr,
    cid = null,
    dig,
    don,
    dst = null,
    exp,
    hst,
    iss_ms: issuedAt,
    jti,
    lid,
    owe,
    prv = null,
    psd,
    pwr,
    rst,
    set,
    skp,
    sub,
    tmp,
    trs,
    yng,
  } = claims
  if (!Array.isArray(amr) || !amr.every(isAuthMethod)) throw new TaskTokenInvalidError()
  // Our key signed the rest, as `signTaskToken` wrote it.
  const tasks: LoginProgress = {
    id: String(lid),
    done: don as string[],
    endsAt: new Date(Number(exp) * 1000),
    isDeviceSettled: set === true,
    codeId: cid === null ? null : String(cid),
  }
  return {
    userId: String(sub),
    amr,
    provider: prv === null ? null : String(prv),
    ...(psd !== undefined && { providerSid: String(psd) }),
    isYoung: yng === true,
    isPersistent: tmp !== true,
    ...(rst === true && { isReset: true }),
    ...(pwr === true && { passwordRequired: true }),
    ...(hst === true && { isFromHost: true }),
    ...(skp === true && { skipsSecondFactor: true }),
    ...(trs !== undefined && { trustsDevice: trs === true }),
    destination: dst as Destination | null,
    tasks,
    owed: owe as string[],
    digest: String(dig),
    issuedAt: Number(issuedAt),
    idHash: hashOpaqueToken(String(jti)),
  }
}

/**
 * Call it with the locked row, or before the transaction with a row that was read. Null: the account is gone.
 * @throws TaskTokenInvalidError if the account changed, the token was used, or all sessions were revoked since
 */
export async function requireTaskLogin(ctx: AuthContext, login: TaskLogin, user: UserRecord | null): Promise<UserRecord> {
  if (!user?.isActive || !isAccountDigest(ctx.keys.tasks, user, login.digest)) throw new TaskTokenInvalidError()
  if (!(await isStillLinked(ctx, login))) throw new TaskTokenInvalidError()
  if ((await ctx.store.userTokens.find(login.idHash)) || (await lastCut(ctx, user.id)) >= login.issuedAt) throw new TaskTokenInvalidError()
  return user
}

/** A provider of the first step that was unlinked since opens no session. */
async function isStillLinked({ store }: AuthContext, { userId, provider, isFromHost }: TaskLogin): Promise<boolean> {
  return (
    provider === null ||
    isFromHost === true ||
    (await store.identities?.listForUser(userId))?.some((linked) => linked.provider === provider) === true
  )
}

/** Call it in the transaction of the step. A used row with a unique hash: of several steps at once, one succeeds. */
export async function consumeTaskToken(ctx: AuthContext, { userId, idHash, tasks }: TaskLogin): Promise<void> {
  const now = ctx.now()
  const row = { userId, tokenHash: idHash, payload: null, expiresAt: tasks.endsAt, usedAt: now, createdAt: now }
  try {
    await ctx.store.userTokens.insert({ ...row, purpose: 'LOGIN_TASK' })
  } catch (error) {
    throw error instanceof DuplicateRecordError ? new TaskTokenInvalidError({ cause: error }) : error
  }
}

/**
 * Ends the open tasks of an account's logins. Call it in every transaction that revokes all, or all other, sessions of a person, and after
 * every use of all one-time tokens, which also uses the row of an earlier call.
 */
export async function endLoginTasks(ctx: AuthContext, userId: string): Promise<void> {
  if (ctx.loginTasks === null) return
  const now = ctx.now()
  const tokenHash = createHash('sha256').update(randomBytes(32)).digest('hex') // nobody has this token
  const row = {
    userId,
    tokenHash,
    payload: String(await issuingTime(ctx, userId)),
    expiresAt: after(now, tasksSeconds),
    usedAt: null,
    createdAt: now,
  }
  await ctx.store.userTokens.insert({ ...row, purpose: 'LOGIN_TASKS_CUT' })
}

/** Milliseconds since 1970; 0: no revocation in the last 15 minutes. In the payload, because a column can store whole seconds. */
async function lastCut({ store, now }: AuthContext, userId: string): Promise<number> {
  const cuts = await store.userTokens.listOpen(userId, 'LOGIN_TASKS_CUT', now())
  return Math.max(0, ...cuts.map(({ payload }) => Number(payload)))
}

/**
 * Later than every revocation before it, also in the same millisecond and with another process's clock. A revocation has this time too, so
 * it ends the tokens that were issued after the one before it. Needs the locked row.
 */
export async function issuingTime(ctx: AuthContext, userId: string): Promise<number> {
  return Math.max(ctx.now().getTime(), (await lastCut(ctx, userId)) + 1)
}
