import type { Request, Response } from 'express'
import Joi from 'joi'
import { type AuthContext, transaction } from '../context'
import { hasPasswords } from '../core/config/every-setting'
import { EmailLinkForbiddenError, InvalidTokenError, PasskeyRejectedError, TokenExpiredError, TooManyRequestsError } from '../core/errors'
import { text } from '../http/input'
import { type Locale, localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { forgetUsedInvitation, invitationRefusals } from '../invitations/carried'
import { type ProvenPasskey, useProvenPasskey, verifyPendingPasskey } from '../passkeys/pending-passkey'
import { againAfterRace, type PresentedPasskey } from '../passkeys/verify-passkey'
import { hasPassword } from '../passwords/verify-password'
import { optionalPasskey, type PasskeyFields, presentedPasskey } from '../second-factor/irreversible-code'
import { stateRefusals } from '../sessions/account-state'
import { announcingRefusal } from '../sessions/devices/login-limits'
import type { AnyLoginResult, LoginClient } from '../sessions/login'
import { loginRoute } from '../sessions/login-route'
import type { RouteSet } from '../sessions/routes-by-delivery'
import { finishLogin, startLogin } from '../sessions/start-login'
import { stateRefusal } from '../sessions/state-refusal'
import type { UserRecord, UserTokenRecord } from '../store/auth-store'
import { consumeLink, findLink, isPending, issueLink, type LinkProof, type LinkToken, refusesEmailLink } from './email-links/email-link'
import { giveBackSignupMail } from './email-links/signup-mails'
import { decidesEntry, keepMark, type SignupMark, signupMarkOf } from './email-verification/signup-binding'
import {
  isFromSignupBrowser,
  passwordField,
  passwordRefusals,
  type SignupOwnership,
  type SignupOwnershipBody,
  signupOwnershipOf,
  type VerifiedSignupOwnership,
  verifySignupOwnership,
  wantsPassword,
} from './email-verification/signup-ownership'
import { announceSignupPasskey, type SignupPasskeyEnd } from './email-verification/signup-passkey'
import { hasDuplicateSignups, isFirstVerification, retryingWithoutFields, verifyAddress } from './email-verification/verify-address'
import { announceActivation } from './first-activation'
import { hasMailedCodes } from './mailed-codes/code-request'
import {
  type LinkOrCodeBody,
  linkOrCode,
  needsLinkOrCode,
  type Presented,
  presentedBy,
  redeem,
  withCode,
  withSignup,
} from './mailed-codes/redeem-code'
import { announceTakeOver, type Clearing, loginAfter, newPasswordSeconds, type TakenOver } from './take-over'

/** The token is in the path or, better, in the body, because access logs do not record bodies. */
export function activationRoutes(ctx: AuthContext, set: RouteSet): Route[] {
  const evidence = { ...passwordField(ctx), ...optionalPasskey(ctx), signup_token: text(512).optional() }
  const activation = {
    describes: {
      summary: 'Activate an account with the mailed link, and log in',
      refuses: [
        InvalidTokenError,
        ...passwordRefusals(ctx),
        ...(ctx.webauthn ? [PasskeyRejectedError] : []),
        ...invitationRefusals(ctx),
        ...stateRefusals(ctx),
        TokenExpiredError,
        EmailLinkForbiddenError,
        TooManyRequestsError,
      ],
    },
    limit: 'activate',
    endsSessions: true,
    after: (ctx: AuthContext, req: Request, res: Response, { userId }: AnyLoginResult) => forgetUsedInvitation(ctx, req, res, userId),
  } as const
  const run = async (ctx: AuthContext, req: Request, presented: Presented, body: EvidenceBody, client: LoginClient) => {
    const evidence = withSignup(await signupOwnershipOf(ctx, req, body), presented)
    const passkey = presentedPasskey(body)
    return redeem(ctx, presented, (proof) => activate(ctx, proof, client, { evidence, passkey, locale: localeOf(ctx, req) }))
  }
  return [
    loginRoute(ctx, set, {
      ...activation,
      path: '/activate/:token',
      body: Joi.object<EvidenceBody>(evidence),
      run: (ctx, req, body, client) =>
        run(ctx, req, presentedBy(ctx, req, 'ACTIVATION', { token: String(req.params['token']) }), body, client),
    }),
    loginRoute(ctx, set, {
      ...activation,
      path: '/activate',
      describes: {
        ...activation.describes,
        summary: `${withCode(ctx, 'Activate an account with the mailed link')}, and log in`,
        ...needsLinkOrCode(ctx),
      },
      ...(hasMailedCodes(ctx) && { hidesAccount: true }),
      body: Joi.object<EvidenceBody & LinkOrCodeBody>({ ...linkOrCode(ctx), ...evidence }),
      run: (ctx, req, body, client) => run(ctx, req, presentedBy(ctx, req, 'ACTIVATION', body), body, client),
    }),
  ]
}

interface EvidenceBody extends SignupOwnershipBody, PasskeyFields {}

interface ActivationOptions {
  evidence?: SignupOwnership | undefined
  /** Signed by the passkey of the sign-up. It is evidence of the owner. */
  passkey?: PresentedPasskey | null | undefined
  /** The page of the link asks for the password, so the link alone is not enough for an account with one. */
  byPage?: boolean | undefined
  /** The language of a mail. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * A deactivated account stays so.
 * @throws InvalidTokenError, InvalidCredentialsError, PasskeyRejectedError, EmailLinkForbiddenError (ends the link too)
 */
export async function activate(
  ctx: AuthContext,
  proof: LinkProof,
  client: LoginClient,
  options: ActivationOptions = {},
): Promise<AnyLoginResult> {
  const { user, ended } = await activateAnd(ctx, proof, options, (ctx, user, takenOver) =>
    startLogin(ctx, client, user, { amr: ['email'], provider: null, ...loginAfter(ctx, takenOver) }),
  )
  return announcingRefusal(ctx, client, user, () => finishLogin(ctx, ended))
}

interface ActivatedOnly {
  readonly userId: string
  /** For a new password, if the activation removed that of another person's sign-up. */
  readonly resetLink: LinkToken | null
}

/** For a page that sets no session cookies. */
export async function activateOnly(ctx: AuthContext, proof: LinkProof, options: ActivationOptions = {}): Promise<ActivatedOnly> {
  const { user, ended: resetLink } = await activateAnd(ctx, proof, options, async (ctx, user, takenOver) =>
    user.isActive && takenOver && hasPasswords(ctx.settings) ? issueLink(ctx, user.id, 'PASSWORD_RESET', null, newPasswordSeconds) : null,
  )
  const refusal = stateRefusal(ctx, user)
  if (refusal) throw refusal
  return { userId: user.id, resetLink }
}

/** What the page must ask for. The link stays valid. @throws the same errors as `activate` */
export async function lookAtActivation(
  ctx: AuthContext,
  proof: LinkProof,
  evidence: SignupOwnership = {},
): Promise<'password' | 'passkey' | null> {
  const { link, user, isRefused } = await findLinkAndUser(ctx, proof)
  if (isRefused) throw new EmailLinkForbiddenError()
  if (!(await isPending(ctx, user))) throw new InvalidTokenError()
  const mark = signupMarkOf(link)
  if (mark?.passkey && ctx.webauthn) return isFromSignupBrowser(ctx, evidence, mark.id) ? null : 'passkey'
  return isFirstVerification(ctx, user, true) && (await wantsPassword(ctx, user, evidence, mark?.id)) ? 'password' : null
}

/** The form may log in only in the browser of the sign-up, or with a password. */
export async function isOfOwner(ctx: AuthContext, proof: LinkProof, evidence: SignupOwnership): Promise<boolean> {
  const { link } = await findLinkAndUser(ctx, proof)
  return Boolean(evidence.password) || isFromSignupBrowser(ctx, evidence, signupMarkOf(link)?.id)
}

export async function addressOfActivation(ctx: AuthContext, proof: LinkProof): Promise<string> {
  return (await findLinkAndUser(ctx, proof)).user.email
}

/** Inside the transaction. */
type Ending<T> = (ctx: AuthContext, user: UserRecord, takenOver: TakenOver | null) => Promise<T>

interface Activated<T> {
  user: UserRecord
  ended: T
  takenOver: TakenOver | null
  passkey: SignupPasskeyEnd
}

async function activateAnd<T>(
  ctx: AuthContext,
  proof: LinkProof,
  { evidence = {}, passkey: shown = null, byPage = false, locale }: ActivationOptions,
  end: Ending<T>,
): Promise<Activated<T>> {
  const { link, user, isRefused } = await findLinkAndUser(ctx, proof)
  if (isRefused) return refuseActivation(ctx, link)
  const mark = signupMarkOf(link)
  const passkey = shown && (await verifyPendingPasskey(ctx, user.id, mark?.passkey ?? null, shown))
  const weighed = passkey ? { verifiedHash: null } : await verifySignupOwnership(ctx, user, evidence, mark?.id)
  const redeeming = { link, evidence: weighed, passkey, byPage }
  const activated = await againAfterRace(() => retryingWithoutFields(ctx, (clearing) => activateInside(ctx, redeeming, clearing, end)))
  await giveBackSignupMail(ctx, link.createdAt)
  announceActivation(ctx, activated.user, locale)
  announceSignupPasskey(ctx, activated.user, activated.passkey, locale)
  if (activated.takenOver) announceTakeOver(ctx, activated.user, activated.takenOver, { locale })
  return activated
}

/**
 * Ends the links like `refuseLink`. An expired row, whose token nobody has, keeps what the sign-up brought: the host may allow a later
 * link. @throws EmailLinkForbiddenError
 */
async function refuseActivation(ctx: AuthContext, { userId }: UserTokenRecord): Promise<never> {
  await transaction(ctx, async (ctx) => {
    const [{ store }, at] = [ctx, ctx.now()]
    await store.users.lock(userId)
    const newest = (await store.userTokens.listOpen(userId, 'ACTIVATION', at)).at(-1)
    await store.userTokens.consumeAllForUser(userId, at, 'ACTIVATION')
    const mark = newest ? signupMarkOf(newest) : null
    if (mark && (mark.passkey || decidesEntry(ctx, mark))) await keepMark(ctx, userId, mark, at)
  })
  throw new EmailLinkForbiddenError()
}

async function findLinkAndUser(
  ctx: AuthContext,
  proof: LinkProof,
): Promise<{ link: UserTokenRecord; user: UserRecord; isRefused: boolean }> {
  const link = await findLink(ctx, proof, 'ACTIVATION')
  const user = await ctx.store.users.find(link.userId)
  if (!user) throw new InvalidTokenError()
  return { link, user, isRefused: await refusesEmailLink(ctx, user) }
}

interface Redeeming {
  readonly link: UserTokenRecord
  readonly evidence: VerifiedSignupOwnership
  readonly passkey: ProvenPasskey | null
  readonly byPage: boolean
}

function activateInside<T>(
  ctx: AuthContext,
  { link, evidence, passkey: proven, byPage }: Redeeming,
  clearing: Clearing,
  end: Ending<T>,
): Promise<Activated<T>> {
  return transaction(ctx, async (ctx) => {
    const now = ctx.now()
    const locked = await ctx.store.users.lock(link.userId)
    if (!locked || !(await isPending(ctx, locked))) throw new InvalidTokenError()
    const hasDuplicates = await hasDuplicateSignups(ctx, locked)
    await consumeLink(ctx, link, 'ACTIVATION')
    if (proven) await useProvenPasskey(ctx, proven)
    await ctx.store.userTokens.consumeAllForUser(locked.id, now, ['ACTIVATION', 'CONTESTED'])
    const mark = signupMarkOf(link)
    const { user, takenOver, passkey } = await verifyAddress(ctx, locked, evidence, {
      isActivation: true,
      signup: mark?.id ?? null,
      trustsLink:
        proven !== null || (trustsLink(ctx, mark, hasDuplicates) && !(byPage && hasPasswords(ctx.settings) && hasPassword(locked))),
      passkey: proven?.pending ?? mark?.passkey ?? null,
      invitation: mark?.invitation ?? null,
      clearing: hasDuplicates ? clearing : 'nothing',
      isApproved: mark?.isApproved === true,
    })
    return { user, ended: await end(ctx, user, takenOver), takenOver, passkey }
  })
}

/** Only with `activationBinding: 'lenient'`, after a single sign-up by password, and never for a link from "I forgot my password". */
function trustsLink({ settings }: AuthContext, mark: SignupMark | null, hasDuplicates: boolean): boolean {
  return settings.activationBinding === 'lenient' && !hasDuplicates && mark?.isLenient !== false && !mark?.passkey
}
