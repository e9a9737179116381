import { randomUUID } from 'node:crypto'
import type { Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { EmailTakenError, SignupThrottledError } from '../errors'
import { type Description, flag, shape, string, stringOrNull } from '../http/description'
import { emailAddress } from '../http/email-address'
import { readJsonBody } from '../http/json-body'
import { type Locale, localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { sendJson } from '../http/send'
import { passwordText, text, validate } from '../http/validate'
import { takeUnit } from '../limits/take-unit'
import { ACTIVATION_WITHHELD } from '../mailbox/refuses-email-link'
import { setLoginCookies } from '../session/delivery'
import { openTokens } from '../session/open-session'
import type { DeliveryLine } from '../session/per-delivery'
import { originOf } from '../session/session-cookie'
import type { UserRecord } from '../store/auth-store'
import { clientKey } from '../throttle/client-key'
import { type Signup, sendFirstLink, signUp, tellOwner } from './sign-up'

type MadeAccount = Signup & { kind: 'made' }

interface SignupBody {
  email: string
  password: string
  name?: string | null
}

const base = Joi.object<SignupBody>({
  email: emailAddress,
  password: passwordText().allow(''),
  name: text(120).allow(null, '').optional(),
})

const describesSignup: Description = {
  summary: 'Make an account with email and password',
  answers: [
    {
      status: 201,
      description: 'Made, or so it looks: a taken address gets the same answer, and its owner a mail.',
      schema: shape('Signup', {
        user_id: string,
        activation_required: flag,
        activation_url: stringOrNull,
        access_token: stringOrNull,
        refresh_token: stringOrNull,
      }),
    },
  ],
  refuses: [EmailTakenError, SignupThrottledError],
}

export function signupRoutes(ctx: AuthContext, { base: path, delivery, before }: DeliveryLine): Route[] {
  return [
    {
      method: 'POST',
      path: `${path}/signup`,
      describes: { ...describesSignup, hostsBody: ctx.signup.schema, hostRefuses: ctx.signup.onSignup !== undefined },
      before,
      body: base,
      handle: async (req, res) => {
        const input = readSignup(ctx, await readJsonBody(req, res))
        await takeUnit(ctx, ctx.budgets.signup, ['signup:client', clientKey(req.ip)], SignupThrottledError)
        const locale = localeOf(req, ctx.settings.defaultLocale)
        const signup = await signUp(ctx, { ...input, locale }, openTokens(originOf(ctx, req)))
        if (signup.kind === 'taken') refuseOrTellOwner(ctx, signup.owner, input.email, locale)
        answer(ctx, res, signup, signup.kind === 'made' ? await linkToShow(ctx, signup, locale) : null, delivery)
      },
    },
  ]
}

/** The host's schema adds to ours and loosens nothing: a body has to satisfy both, and ours decides what is stored. */
function readSignup(ctx: AuthContext, body: unknown): SignupBody & { extra: object } {
  const own = validate(base, body)
  if (!ctx.signup.schema) return { ...own, extra: {} }
  const { password: _, ...extra } = validate(ctx.signup.schema as Joi.ObjectSchema<SignupBody>, body, { presence: 'optional' })
  return { ...own, extra }
}

/** Where a taken address is not told to the asker, its owner is told instead (contract section 10.5). @throws EmailTakenError */
function refuseOrTellOwner(ctx: AuthContext, owner: UserRecord | null, address: string, locale: Locale): void {
  if (ctx.settings.autoActivate || ctx.settings.revealTakenEmail) throw new EmailTakenError()
  // Never 503 here: a free address would not get it.
  const isStarted = ctx.background.runIfRoom('signup with a taken address', () => tellOwner(ctx, owner, address, locale))
  if (!isStarted && owner) ctx.events.emit('mail.failed', { userId: owner.id, kind: 'notice', reason: 'too_many' })
}

/** The mail goes on after the answer, which a taken address does not wait for either; null where links are not shown. */
async function linkToShow(ctx: AuthContext, account: MadeAccount, locale: Locale): Promise<string | null> {
  const send = () => sendFirstLink(ctx, account, locale)
  if (!ctx.showsLinks) {
    const isStarted = ctx.background.runIfRoom('activation mail of a signup', send)
    if (!isStarted) ctx.events.emit('mail.failed', { userId: account.user.id, kind: 'activation', reason: 'too_many' })
    return null
  }
  const link = await send()
  return link && link !== ACTIVATION_WITHHELD ? link.url : null
}

function answer(ctx: AuthContext, res: Response, signup: Signup, activationUrl: string | null, delivery: DeliveryLine['delivery']): void {
  const session = signup.kind === 'made' && signup.session?.kind === 'session' ? signup.session : null
  if (session && delivery === 'cookie') setLoginCookies(ctx, res, session)
  const tokens = delivery === 'cookie' ? null : session
  sendJson(res, 201, {
    user_id: signup.kind === 'made' ? shownId(signup) : randomUUID(),
    activation_required: session === null,
    activation_url: activationUrl,
    access_token: tokens?.accessToken ?? null,
    refresh_token: tokens?.refreshToken ?? null,
  })
}

/** Keys that count upwards would tell a new account from a taken address, whose id is made up: then both are. */
function shownId({ user }: MadeAccount): string {
  return user.isActive || uuid.test(user.id) ? user.id : randomUUID()
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
