import type { AuthContext } from '../context'
import { ConflictError, InternalError, TaskTokenInvalidError } from '../core/errors'
import { withOwnMessage } from '../core/logger'
import type { TextKey } from '../core/texts/phrase-book'
import { card, emptyForm, type FormState, field, form, Html, hidden, html, type Part, problem } from '../http/html/document'
import { formOf } from '../http/html/form-of'
import type { Page } from '../http/html/send-page'
import { queryParameter } from '../http/locale'
import { locationOf } from '../http/return-to'
import type { Route } from '../http/routes'
import { isOwnRequest } from '../http/same-site'
import type { HostTask, TaskPage } from '../login-tasks/login-task'
import { pathOfTask } from '../login-tasks/routes'
import { readTaskToken, requireTaskLogin, type TaskLogin } from '../login-tasks/task-token'
import type { BoundLogin } from '../router/request-service/request-service'
import { forAuthenticatorApp } from '../second-factor/enroll'
import { clearTasks, keepTasks, leaveNotice, readTasksCookie } from '../sessions/cookies'
import type { UserRecord } from '../store/auth-store'
import { enrolmentPage, openEnrolment, type PageEnrolment, recoveryCodesPage, sealEnrolment } from './account/security'
import { requireOwnForm } from './account-visit'
import { afterLogin } from './after-login'
import { FormFault, passwordRule, requireFields, showNotice } from './form-fault'
import { messagePage } from './message-page'
import { Elsewhere, type GoOn, pageRouteSets } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'
import { isOurSignIn, signInAddress, signInAgainAddress } from './signed-in'

/** The page of the first task that a login owes. It exists whatever `pagesEnabled` says, and needs no script. */
export function loginTaskRoutes(site: PageSite): Route[] {
  const { loginTasks, settings } = site.ctx
  if (loginTasks === null || settings.tokenDelivery === 'bearer') return []
  const { device, newPassword, secondFactor, hosts } = loginTasks
  return [
    ...pageRouteSets(site, { path: '/tasks', summary: 'The page of what a login owes', show: (visit, state) => show(visit, state) }),
    ...(device ? [...formRoute(site, '/tasks/device', confirmCode), ...formRoute(site, '/tasks/device/resend', resend)] : []),
    ...(newPassword ? formRoute(site, '/tasks/new-password', setPassword) : []),
    ...(secondFactor
      ? [...formRoute(site, '/tasks/second-factor/enroll', beginFactor), ...formRoute(site, '/tasks/second-factor/confirm', confirmFactor)]
      : []),
    ...hosts.flatMap((task) => formRoute(site, pathOfTask(task.key), (visit, fields) => completeHostTask(visit, fields, task))),
  ]
}

interface TaskVisit extends Visit {
  readonly login: TaskLogin
  readonly user: UserRecord
  readonly taskToken: string
}

type Act = (visit: TaskVisit, fields: Fields) => Promise<Page | GoOn>

/** Posts to the route of the task, which also takes JSON. */
function formRoute(site: PageSite, path: `/${string}`, act: Act): Route[] {
  const sentences: Record<string, TextKey> = { MFA_CODE_INVALID: 'mfa.wrong', MFA_THROTTLED: 'mfa.throttled' }
  return pageRouteSets(site, {
    path,
    summary: `The form of the page that posts to ${path}`,
    sharesPath: true,
    sentences,
    faultFields: { MFA_CODE_INVALID: 'code', EMAIL_LOGIN_INVALID: 'code' },
    passwordField: 'new_password',
    show: (visit, state) => show(visit, state),
    post: async (visit, fields) => {
      try {
        const entered = await enter(visit)
        requireOwnForm({ person: entered.user }, fields)
        return await act(entered, fields)
      } catch (error) {
        if (error instanceof ConflictError) return { to: visit.reader.href('/tasks') } // a form of an earlier task
        return overPage(visit, error instanceof TaskTokenInvalidError ? isOver(visit) : error)
      }
    },
  }).filter(({ method }) => method === 'POST')
}

/** @throws Elsewhere if the browser has no login that owes anything */
async function enter(visit: Visit): Promise<TaskVisit> {
  const { ctx, req } = visit
  const kept = readTasksCookie(ctx, req)
  if (kept === null) throw isOver(visit)
  try {
    const login = readTaskToken(ctx, kept.taskToken)
    const user = await requireTaskLogin(ctx, login, await ctx.store.users.find(login.userId))
    return { ...visit, login, user, taskToken: kept.taskToken, returnTo: kept.returnTo ?? returnToOf(login) }
  } catch (error) {
    throw error instanceof TaskTokenInvalidError ? isOver(visit) : error
  }
}

function returnToOf({ destination = null }: TaskLogin): string | null {
  return destination && 'returnTo' in destination ? destination.returnTo : null
}

/** Without our pages and without a page of the host's, `/tasks` itself says it. */
function isOver({ ctx, res, reader }: Visit): Error {
  clearTasks(ctx, res)
  if (!hasSignInPage(ctx)) return new NothingOwed()
  if (isOurSignIn(ctx)) leaveNotice(ctx, res, 'challenge_over')
  return new Elsewhere({ to: signInAddress(ctx, reader) })
}

class NothingOwed extends Error {}

/** *Not you?*. A link of another site leads to the task, because it must not end this person's login. */
function isLeaving({ ctx, req }: Visit): boolean {
  return req.method === 'GET' && queryParameter(req, 'switch', 1) === '1' && isOwnRequest(ctx, req)
}

function leave({ ctx, res, reader }: Visit): Error {
  clearTasks(ctx, res)
  return hasSignInPage(ctx) ? new Elsewhere({ to: signInAgainAddress(ctx, reader, null) }) : new NothingOwed()
}

/** Ours, or the host's. */
function hasSignInPage(ctx: AuthContext): boolean {
  return ctx.settings.pagesEnabled || !isOurSignIn(ctx)
}

async function show(visit: Visit, state: FormState): Promise<Page> {
  try {
    if (isLeaving(visit)) throw leave(visit)
    const entered = await enter(visit)
    return pageOf(entered, bodyOf(entered, state), state)
  } catch (error) {
    return overPage(visit, error)
  }
}

/** @throws any other error */
function overPage({ reader }: Visit, error: unknown): Page {
  if (!(error instanceof NothingOwed)) throw error
  const title = reader.text('link.challenge_over.title')
  return { page: 'tasks', title, body: messagePage({ title, lead: reader.text('link.challenge_over.lead') }), status: 400 }
}

/** Every page names the account, because another person may have put the cookie into this browser. */
function pageOf(visit: TaskVisit, body: Html, state: FormState = emptyForm): Page {
  const { reader, user } = visit
  const notYou = html`<a href="${reader.href('/tasks', { switch: '1' })}">${reader.text('tasks.not_you')}</a>`
  const whose = html`<p class="below">${reader.text('tasks.account', { email: user.email })} ${notYou}</p>
`
  const target = landingOf(visit)
  const formTargets = URL.canParse(target) ? [new URL(target).origin] : []
  return { page: 'tasks', title: titleOf(visit), body: html`${showNotice(visit, state, body)}${whose}`, formTargets }
}

function hostTaskOf({ ctx, login }: TaskVisit): HostTask | undefined {
  return ctx.loginTasks?.hosts.find(({ key }) => key === login.owed[0])
}

function titleOf(visit: TaskVisit): string {
  const [task = ''] = visit.login.owed
  const own = ownTitles[task]
  return own ? visit.reader.text(own) : (hostTaskOf(visit)?.page?.title ?? visit.reader.text('tasks.continue'))
}

const ownTitles: Readonly<Record<string, TextKey>> = {
  device: 'tasks.device',
  new_password: 'tasks.new_password',
  second_factor: 'tasks.second_factor',
}

function bodyOf(visit: TaskVisit, state: FormState): Html {
  const [task] = visit.login.owed
  if (task === 'device') return devicePage(visit, state)
  if (task === 'new_password') return passwordPage(visit, state)
  if (task !== 'second_factor') return hostPage(visit, state)
  const begun = state.values['enrolment'] === undefined ? null : begunIn(visit, state.values)
  return begun ? enrolment(visit, begun, state) : beginPage(visit, state)
}

function heading(visit: TaskVisit, lead: TextKey): Html {
  return html`<h1>${titleOf(visit)}</h1>
<p class="lead">${visit.reader.text(lead)}</p>
`
}

function devicePage(visit: TaskVisit, state: FormState): Html {
  const { reader, user } = visit
  return card(
    heading(visit, 'tasks.device_lead'),
    problem(state),
    form({
      action: reader.href('/tasks/device'),
      fields: [
        hidden('form_of', formOf(user)),
        field(reader, state, {
          name: 'code',
          label: reader.text('field.code'),
          autocomplete: 'one-time-code',
          isCode: true,
          isDigits: true,
          isFirst: true,
        }),
      ],
      button: reader.text('tasks.continue'),
    }),
    form({
      action: reader.href('/tasks/device/resend'),
      fields: [hidden('form_of', formOf(user))],
      button: reader.text('tasks.resend'),
      look: 'plain',
    }),
  )
}

async function confirmCode(visit: TaskVisit, { code = '' }: Fields): Promise<GoOn> {
  requireFields({ code }, 'code')
  return goOn(visit, await visit.ask.confirmDevice({ taskToken: visit.taskToken, code }))
}

async function resend({ ctx, res, reader, ask, taskToken, returnTo }: TaskVisit): Promise<GoOn> {
  const resent = await ask.resendDeviceCode({ taskToken })
  keepTasks(ctx, res, { taskToken: resent.taskToken, returnTo })
  leaveNotice(ctx, res, 'sent_again')
  return { to: reader.href('/tasks') }
}

function passwordPage(visit: TaskVisit, state: FormState): Html {
  const { ctx, reader, user } = visit
  const secret = { type: 'password', autocomplete: 'new-password' } as const
  return card(
    heading(visit, 'tasks.new_password_lead'),
    problem(state),
    form({
      action: reader.href('/tasks/new-password'),
      fields: [
        hidden('form_of', formOf(user)),
        html`<input type="text" name="username" value="${user.email}" autocomplete="username" hidden readonly>`,
        field(reader, state, {
          ...secret,
          name: 'new_password',
          label: reader.text('password.new'),
          hint: passwordRule(ctx, reader),
          isFirst: true,
        }),
        field(reader, state, { ...secret, name: 'confirm_password', label: reader.text('password.confirm') }),
      ],
      button: reader.text('tasks.continue'),
    }),
  )
}

async function setPassword(visit: TaskVisit, fields: Fields): Promise<GoOn> {
  requireFields(fields, 'new_password', 'confirm_password')
  const { new_password: newPassword = '', confirm_password: again } = fields
  if (newPassword !== again) throw new FormFault({ confirm_password: 'password.mismatch' })
  return goOn(visit, await visit.ask.setNewPassword({ taskToken: visit.taskToken, newPassword }))
}

/** A request for the page makes no secret. */
function beginPage(visit: TaskVisit, state: FormState): Html {
  const { reader, user } = visit
  return card(
    heading(visit, 'security.begin_lead'),
    problem(state),
    form({
      action: reader.href('/tasks/second-factor/enroll'),
      fields: [hidden('form_of', formOf(user))],
      button: reader.text('security.begin_button'),
    }),
  )
}

async function beginFactor(visit: TaskVisit): Promise<Page> {
  const { secret, recoveryCodes } = await visit.ask.beginSecondFactor({ taskToken: visit.taskToken })
  return pageOf(visit, enrolment(visit, { secret, recoveryCodes }, emptyForm))
}

function enrolment(visit: TaskVisit, begun: PageEnrolment, state: FormState): Html {
  const { ctx, reader, user } = visit
  return enrolmentPage(reader, state, {
    secret: begun.secret,
    ...forAuthenticatorApp(ctx, user.email, begun.secret),
    sealed: hidden('enrolment', sealEnrolment(ctx, purposeOf(visit), begun)),
    formOf: hidden('form_of', formOf(user)),
    action: reader.href('/tasks/second-factor/confirm'),
    back: null,
  })
}

function begunIn(visit: TaskVisit, { enrolment: sealed = '' }: Fields): PageEnrolment | null {
  return openEnrolment(visit.ctx, purposeOf(visit), sealed)
}

function purposeOf({ user, login }: TaskVisit): string {
  return `enrolment of ${user.id} in login ${login.tasks.id}`
}

/** The recovery codes are shown once, with a link to what comes next. */
async function confirmFactor(visit: TaskVisit, fields: Fields): Promise<Page> {
  const begun = begunIn(visit, fields)
  if (!begun) throw new FormFault({ form: 'security.too_late' }, { keepsValues: false })
  requireFields(fields, 'code')
  const { code = '' } = fields
  const { to } = await goOn(visit, await visit.ask.finishSecondFactor({ taskToken: visit.taskToken, code }))
  return pageOf(
    visit,
    recoveryCodesPage(visit.reader, begun.recoveryCodes, { isNewFactor: true, to, label: visit.reader.text('security.kept') }),
  )
}

function hostPage(visit: TaskVisit, state: FormState): Html {
  const { reader, user } = visit
  const page = hostTaskOf(visit)?.page
  const [fault = null] = Object.values(state.faults)
  const fields: Part = page ? fieldsOf(page, { email: user.email, locale: reader.lang, error: state.problem ?? fault }) : null
  return card(
    html`<h1>${titleOf(visit)}</h1>
`,
    page ? null : problem(state),
    form({
      action: reader.href(pathOfTask(visit.login.owed[0] ?? '')),
      fields: [hidden('form_of', formOf(user)), fields],
      button: reader.text('tasks.continue'),
    }),
  )
}

/** The host escapes its own values. */
function fieldsOf({ title, html: fields }: TaskPage, about: Parameters<TaskPage['html']>[0]): Html {
  const written: unknown = fields(about)
  if (typeof written === 'string') return new Html(written)
  const reason = `The function html of the task page ${JSON.stringify(title)} must return a string; return the fields of the form.`
  throw new InternalError({ cause: withOwnMessage(new Error(reason)) })
}

async function completeHostTask(visit: TaskVisit, fields: Fields, { key }: HostTask): Promise<GoOn> {
  const { form_of: _, ...body } = fields
  return goOn(visit, await visit.ask.completeTask(key, { taskToken: visit.taskToken, body }))
}

/** To the page of the next task, or to where the login was going. */
function goOn(visit: TaskVisit, login: BoundLogin): Promise<GoOn> {
  return afterLogin(visit, login, landingOf(visit))
}

function landingOf(visit: TaskVisit): string {
  const { ctx, reader, login, returnTo } = visit
  if (returnTo !== null) return locationOf(returnTo)
  const { oauthSuccessRedirect, pagesEnabled } = ctx.settings
  if (oauthSuccessRedirect !== null && (login.provider !== null || !pagesEnabled)) return oauthSuccessRedirect
  return pagesEnabled ? reader.href('/account') : ctx.prefix
}
