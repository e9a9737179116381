import type { AuthContext } from '../context'
import { InvalidTokenError, MfaRequiredError, ReauthenticationRequiredError } from '../core/errors'
import type { PageName } from '../core/templates'
import type { TextKey } from '../core/texts/phrase-book'
import { emptyForm, type FormState, Html, html, notice, type Part } from '../http/html/document'
import type { Page } from '../http/html/send-page'
import type { Route } from '../http/routes'
import { leaveNotice, type NoticeWord, takeNotice } from '../sessions/cookies'
import { isFresh } from '../sessions/reauthentication/fresh-session'
import { endOthersCard } from './account/devices-page'
import { type AccountVisit, accountNavigation, enterAs, requireOwnForm, toSignIn } from './account-visit'
import type { Explaining } from './form-fault'
import { Elsewhere, pageRouteSets } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'

export interface Done {
  readonly notice?: NoticeWord
  /** Below the prefix. Default: the page itself. */
  readonly to?: string
}

/** A page without the account area, because the account is closed or gone. */
export interface Farewell {
  readonly farewell: Page
}

/** `show` and `post` need a live session, and a fresh one by `needsFresh`. `post` gets no form that was made for another person. */
export interface AccountPage extends Explaining {
  readonly page: PageName
  /** Below the prefix. */
  readonly path: `/account${string}`
  readonly title: TextKey
  /** If undefined, the navigation does not contain the page. */
  readonly navigation?: TextKey
  /** False: the feature is off, the page does not exist, and no page links to it. */
  isThere(ctx: AuthContext): boolean
  /** If the session is not fresh, the person first confirms a credential and then returns to the page. */
  readonly needsFresh?: boolean | ((entered: AccountVisit, fields: Fields) => boolean)
  /** Other origins to which the form may redirect. */
  formTargets?(ctx: AuthContext): readonly string[]
  show(visit: AccountVisit, state: FormState): Html | Promise<Html>
  /** If it throws, the page shows the form again with the error. Cards, for content that appears only once, have status 200. */
  post?(visit: AccountVisit, fields: Fields): Promise<Done | Html | Farewell>
  /** Another route handles requests to this path that do not send a form. */
  readonly sharesPath?: boolean
}

export function accountPageRoutes(site: PageSite, pages: readonly AccountPage[]): Route[] {
  const there = pages.filter((page) => page.isThere(site.ctx))
  return there.flatMap((page) => accountLines(site, page, there))
}

function accountLines(site: PageSite, page: AccountPage, all: readonly AccountPage[]): Route[] {
  const { post, ...others } = page
  return pageRouteSets(site, {
    ...others,
    summary: `The page ${page.path} of the account`,
    show: async (visit, state) => {
      const entered = await enter(visit, page, state.values)
      const word = state === emptyForm ? takeNotice(visit.ctx, visit.req, visit.res) : null
      const said = notice(word && visit.reader.text(`notice.${word}`))
      return inArea(entered, page, all, [
        said,
        afterRemoval(entered, word, all),
        signal(entered, page, word),
        await page.show(entered, state),
      ])
    },
    ...(post && {
      post: async (visit: Visit, fields: Fields) => {
        const entered = await enter(visit, page, fields)
        requireOwnForm(entered, fields)
        const outcome = await acted(entered, page, () => post(entered, fields))
        if ('farewell' in outcome) return outcome.farewell
        if (outcome instanceof Html) return inArea(entered, page, all, [outcome])
        if (outcome.notice) leaveNotice(visit.ctx, visit.res, outcome.notice)
        return { to: visit.reader.href(outcome.to ?? page.path) }
      },
    }),
  })
}

/** After a login, which leads to the overview, and after each change, the page's script tells the authenticators. */
function signal({ ctx, reader }: AccountVisit, { page }: AccountPage, word: NoticeWord | null): Part {
  if (!ctx.settings.passkeysEnabled || (page !== 'account' && word === null)) return null
  return html`<span hidden data-signal="${reader.href('/passkeys/signal')}"></span>
`
}

const removals: ReadonlySet<NoticeWord | null> = new Set<NoticeWord>(['passkey_removed', 'connection_removed'])

/** Signs the person out everywhere else, on the page after a credential was removed. */
function afterRemoval({ reader, formOf }: AccountVisit, word: NoticeWord | null, all: readonly AccountPage[]): Part {
  const devices = removals.has(word) ? all.find(({ page }) => page === 'devices') : undefined
  return devices ? endOthersCard(reader, { action: reader.href(devices.path), formOf }) : null
}

/** @throws Elsewhere if nobody is logged in, or if the page needs a credential first */
async function enter(visit: Visit, page: AccountPage, fields: Fields): Promise<AccountVisit> {
  const entered = await enterAs(visit, visit.reader.href(page.path))
  if (needsFresh(page, entered, fields) && !isFresh(entered.session, visit.ctx.settings.freshSessionSeconds))
    throw toConfirmation(visit, page)
  return entered
}

/** If the session has ended or is no longer fresh, redirects as the page would. */
async function acted<Outcome>(visit: Visit, page: AccountPage, act: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof ReauthenticationRequiredError || error instanceof MfaRequiredError) throw toConfirmation(visit, page)
    if (error instanceof InvalidTokenError) throw toSignIn(visit, visit.reader.href(page.path))
    throw error
  }
}

function toConfirmation({ reader }: Visit, { path }: AccountPage): Elsewhere {
  return new Elsewhere({ to: reader.href('/reauthenticate', { return_to: reader.href(path) }) })
}

function needsFresh({ needsFresh = false }: AccountPage, entered: AccountVisit, fields: Fields): boolean {
  return typeof needsFresh === 'boolean' ? needsFresh : needsFresh(entered, fields)
}

function inArea({ ctx, reader, person }: AccountVisit, open: AccountPage, all: readonly AccountPage[], cards: readonly Part[]): Page {
  const listed = all.flatMap(({ path, navigation }) => (navigation ? [{ path, label: reader.text(navigation) }] : []))
  return {
    page: open.page,
    title: reader.text(open.title),
    body: html`${cards.filter((card) => card !== null)}`,
    navigation: accountNavigation(reader, listed, open.path),
    user: person,
    formTargets: open.formTargets?.(ctx) ?? [],
  }
}
