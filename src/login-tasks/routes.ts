import type { Request, RequestHandler } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import {
  ConflictError,
  EmailLoginInvalidError,
  MfaCodeInvalidError,
  MfaNotEnrolledError,
  MfaThrottledError,
  TaskTokenInvalidError,
  TooManyRequestsError,
  ValidationError,
} from '../core/errors'
import { shape, string } from '../http/description'
import { passwordText, text } from '../http/input'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { sendJson, setResult } from '../http/send'
import { routeRateLimit } from '../rate-limits/rate-limiter'
import { factorCode } from '../second-factor/accept-code'
import { enrolmentBody, enrolmentSchema } from '../second-factor/enroll'
import { keepTasks } from '../sessions/cookies'
import { loginClient, loginClientWith } from '../sessions/delivery'
import { presentedDevice } from '../sessions/devices/device-cookie'
import type { LoginClient } from '../sessions/login'
import { type LoginOperation, loginRoute, sessionLoginRoute } from '../sessions/login-route'
import { routesByDelivery } from '../sessions/routes-by-delivery'
import type { HostTask } from './login-task'
import {
  beginSecondFactor,
  completeTask,
  confirmDevice,
  finishSecondFactor,
  resendDeviceCode,
  type StepClient,
  setNewPassword,
} from './steps'

/** Each route is there only if a configured task can need it. */
export function taskRoutes(ctx: AuthContext): Route[] {
  if (ctx.loginTasks === null) return []
  const limit = [routeRateLimit(ctx, 'tasks')]
  const logins = loginOperations(ctx).map((operation) => ({ ...operation, first: limit }))
  return [
    ...routesByDelivery(ctx, (set) => [
      ...logins.map((operation) => loginRoute(ctx, set, operation)),
      ...otherRoutes(ctx, { base: set.base, setsCookie: set.delivery !== 'bearer', before: [...limit, ...set.before] }),
    ]),
    ...logins.flatMap((operation) => sessionLoginRoute(ctx, operation)),
    ...(ctx.store.sessions ? otherRoutes(ctx, { base: '/session', setsCookie: true, before: [...limit, sameSite(ctx)] }) : []),
  ]
}

const taskToken = { task_token: text(4096) }

interface TokenBody {
  task_token: string
}

/** The steps that end in the next answer of the login. */
function loginOperations({ loginTasks }: AuthContext): LoginOperation<never>[] {
  const { device, newPassword, secondFactor, hosts } = loginTasks ?? { hosts: [] }
  return [
    ...(device ? [deviceStep] : []),
    ...(newPassword ? [passwordStep] : []),
    ...(secondFactor ? [factorStep] : []),
    ...hosts.map(hostStep),
  ]
}

const refusals = [TaskTokenInvalidError, ConflictError, TooManyRequestsError]

function step<Body>(operation: Omit<LoginOperation<Body>, 'run'> & { run: Step<Body> }): LoginOperation<never> {
  const { run, ...others } = operation
  const told: LoginOperation<Body> = { ...others, run: (ctx, req, body, client) => run(ctx, body, stepClient(ctx, req, client)) }
  return told as LoginOperation<never> // each operation validates the body that its own `run` gets
}

type Step<Body> = (ctx: AuthContext, body: Body, client: StepClient) => ReturnType<typeof confirmDevice>

function stepClient(ctx: AuthContext, req: Request, client: LoginClient): StepClient {
  return { client, presented: presentedDevice(ctx, req) }
}

const deviceStep = step<TokenBody & { code: string }>({
  path: '/tasks/device',
  describes: { summary: 'Go on with a login: the mailed code for an unknown device', refuses: [EmailLoginInvalidError, ...refusals] },
  // Any string counts as a wrong code, not as a malformed request.
  body: Joi.object({ ...taskToken, code: Joi.string().allow('') }),
  run: (ctx, { task_token: taskToken, code }, client) => confirmDevice(ctx, { taskToken, code }, client),
})

const passwordStep = step<TokenBody & { new_password: string }>({
  path: '/tasks/new-password',
  describes: { summary: 'Go on with a login: a new password', refuses: [...refusals, ValidationError] },
  body: Joi.object({ ...taskToken, new_password: passwordText().allow('') }),
  endsSessions: true,
  run: (ctx, { task_token: taskToken, new_password: newPassword }, client) => setNewPassword(ctx, { taskToken, newPassword }, client),
})

const factorStep = step<TokenBody & { code: string }>({
  path: '/tasks/second-factor/confirm',
  describes: {
    summary: 'Go on with a login: confirm the new second factor with a code',
    refuses: [...refusals, MfaNotEnrolledError, MfaCodeInvalidError, MfaThrottledError],
  },
  body: Joi.object({ ...taskToken, code: factorCode }),
  endsSessions: true,
  run: (ctx, { task_token: taskToken, code }, client) => finishSecondFactor(ctx, { taskToken, code }, client),
})

/** Of a key, `_` as `-`. */
export function pathOfTask(key: string): `/${string}` {
  return `/tasks/${key.replaceAll('_', '-')}`
}

function hostStep({ key }: HostTask): LoginOperation<never> {
  return step<TokenBody & Record<string, unknown>>({
    path: pathOfTask(key),
    describes: { summary: `Go on with a login: the task ${key} of this app`, refuses: refusals, hostRefuses: true },
    body: Joi.object({ ...taskToken }).unknown(true),
    run: (ctx, { task_token: taskToken, ...body }, client) => completeTask(ctx, key, { taskToken, body }, client),
  })
}

interface Placed {
  readonly base: '' | '/cookie' | '/session'
  readonly setsCookie: boolean
  readonly before: readonly RequestHandler[]
}

/** The steps that answer no login. */
function otherRoutes(ctx: AuthContext, placed: Placed): Route[] {
  const { device = false, secondFactor = null } = ctx.loginTasks ?? {}
  return [...(device ? [resendRoute(ctx, placed)] : []), ...(secondFactor ? [enrollRoute(ctx, placed)] : [])]
}

function resendRoute(ctx: AuthContext, { base, setsCookie, before }: Placed): Route {
  return withBody({
    method: 'POST',
    path: `${base}/tasks/device/resend`,
    describes: {
      summary: 'Mail another code for an unknown device. The old code and the old token end',
      answers: [{ status: 200, description: 'The token for the next step.', schema: shape('ResentTask', { task_token: string }) }],
      refuses: refusals,
    },
    before,
    body: Joi.object<TokenBody>(taskToken),
    handle: async (req, res, { task_token }) => {
      const client = base === '/session' ? loginClientWith(ctx, req, 'session') : loginClient(ctx, req)
      const resent = await resendDeviceCode(ctx, { taskToken: task_token }, { client })
      if (setsCookie) keepTasks(ctx, res, { taskToken: resent.taskToken, returnTo: null })
      setResult(res, resent)
      sendJson(res, 200, { task_token: resent.taskToken })
    },
  })
}

function enrollRoute(ctx: AuthContext, { base, before }: Placed): Route {
  return withBody({
    method: 'POST',
    path: `${base}/tasks/second-factor/enroll`,
    describes: {
      summary: 'Go on with a login: begin to set up the second factor. The token stays valid',
      answers: [{ status: 200, description: 'The secret, shown once.', schema: enrolmentSchema }],
      refuses: refusals,
    },
    before,
    body: Joi.object<TokenBody>(taskToken),
    handle: async (req, res, { task_token }) => {
      const enrolment = await beginSecondFactor(ctx, { taskToken: task_token, locale: localeOf(ctx, req) })
      setResult(res, enrolment)
      sendJson(res, 200, enrolmentBody(enrolment))
    },
  })
}
