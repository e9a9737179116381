import { randomUUID } from 'node:crypto'
import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { EmailTakenError, SignupThrottledError } from '../errors'
import { emailAddress } from '../http/email-address'
import { readJsonBody } from '../http/json-body'
import { localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { sendJson } from '../http/send'
import { passwordText, text, validate } from '../http/validate'
import { takeUnit } from '../limits/take-unit'
import { setLoginCookies } from '../session/delivery'
import type { DeliveryLine } from '../session/per-delivery'
import { clientKey } from '../throttle/client-key'
import { ACTIVATION_WITHHELD } from './refuses-email-link'
import { type SignedUp, signUp, tellOwner } from './sign-up'

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

export function signupRoutes(ctx: AuthContext, { base: path, delivery, before }: DeliveryLine): Route[] {
  return [
    {
      method: 'POST',
      path: `${path}/signup`,
      before,
      body: base,
      handle: async (req, res) => {
        const input = readSignup(ctx, await readJsonBody(req, res))
        await takeUnit(ctx, ctx.budgets.signup, ['signup:client', clientKey(req.ip)], SignupThrottledError)
        answer(ctx, res, await signUpQuietly(ctx, req, input), delivery)
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

/** Null stands for a taken address whose owner is told instead of the asker (contract section 10.5). */
async function signUpQuietly(ctx: AuthContext, req: Request, input: SignupBody & { extra: object }): Promise<SignedUp | null> {
  const locale = localeOf(req, ctx.settings.defaultLocale)
  try {
    return await signUp(ctx, { ...input, name: input.name || null, locale }, { logsIn: true })
  } catch (error) {
    if (!(error instanceof EmailTakenError) || ctx.settings.autoActivate || ctx.settings.revealTakenEmail) throw error
    // Never 503 here: a free address would not get it.
    ctx.background.runIfRoom('signup with a taken address', () => tellOwner(ctx, input.email, locale))
    return null
  }
}

function answer(ctx: AuthContext, res: Response, account: SignedUp | null, delivery: DeliveryLine['delivery']): void {
  const session = account?.session?.kind === 'session' ? account.session : null
  if (session && delivery === 'cookie') setLoginCookies(ctx, res, session)
  const tokens = delivery === 'cookie' ? null : session
  const activation = account?.activation
  sendJson(res, 201, {
    user_id: account ? shownId(account) : randomUUID(),
    activation_required: session === null,
    activation_url: ctx.showsLinks && activation && activation !== ACTIVATION_WITHHELD ? activation.url : null,
    access_token: tokens?.accessToken ?? null,
    refresh_token: tokens?.refreshToken ?? null,
  })
}

/** Keys that count upwards would tell a new account from a taken address, whose id is made up: then both are. */
function shownId({ user }: SignedUp): string {
  return user.isActive || uuid.test(user.id) ? user.id : randomUUID()
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
