import type { AuthContext } from '../context'
import { InvalidTokenError, MfaRequiredError, ReauthenticationRequiredError } from '../errors'
import { Html, html } from '../http/html'
import type { Route } from '../http/routes'
import type { PageName } from '../page-templates'
import { accountNavigation } from '../pages/account-navigation'
import { notice, type Part } from '../pages/elements'
import { emptyForm, type FormState } from '../pages/form-state'
import type { Page } from '../pages/show-page'
import { leaveNotice, type NoticeWord, takeNotice } from '../session/notice-cookie'
import type { SessionOfRequest } from '../step-up/fresh-session'
import type { TextKey } from '../texts/texts'
import { type AccountVisit, enterAs, requireOwnForm, toSignIn } from './account-visit'
import type { Explaining } from './form-fault'
import { Elsewhere, pageLines } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'

/** The result of a form that succeeded. */
export interface Done {
  /** Shown on the next page. */
  readonly notice?: NoticeWord
  /** Path below the prefix. Default: the page itself. */
  readonly to?: string
}

/**
 * A page of the account area. `show` and `post` run only for a person with a live session, which is fresh if `needsFresh` requires it. A
 * form that was made for another person is rejected before `post`.
 */
export interface AccountPage extends Explaining {
  readonly page: PageName
  /** Path below the prefix. */
  readonly path: `/account${string}`
  readonly title: TextKey
  /** Its label in the list of pages. Left out: it is not in the list. */
  readonly navigation?: TextKey
  /** True if its feature is on. If not, the page does not exist, and no page links to it. */
  isThere(ctx: AuthContext): boolean
  /** Asks for a credential first if the session is not fresh, and returns to the page. `fields`: the fields of its form. */
  readonly needsFresh?: boolean | ((entered: AccountVisit, fields: Fields) => boolean)
  /** Further origins to which its form may redirect. */
  formTargets?(ctx: AuthContext): readonly string[]
  /** Returns the cards of the page. */
  show(visit: AccountVisit, state: FormState): Html | Promise<Html>
  /**
   * Handles the form; its errors are shown in the form. Returns cards instead of `Done` for content that is shown once, with status 200.
   */
  post?(visit: AccountVisit, fields: Fields): Promise<Done | Html>
}

/** Returns the routes of the pages whose features are on. */
export function accountRoutes(site: PageSite, pages: readonly AccountPage[]): Route[] {
  const there = pages.filter((page) => page.isThere(site.ctx))
  return there.flatMap((page) => accountLines(site, page, there))
}

function accountLines(site: PageSite, page: AccountPage, all: readonly AccountPage[]): Route[] {
  const { post, ...others } = page
  return pageLines(site, {
    ...others,
    summary: `The page ${page.path} of the account`,
    show: async (visit, state) => {
      const entered = await enter(visit, page, state.values)
      const word = state === emptyForm ? takeNotice(visit.ctx, visit.req, visit.res) : null
      return inArea(entered, page, all, [notice(word && visit.reader.text(`notice.${word}`)), await page.show(entered, state)])
    },
    ...(post && {
      post: async (visit: Visit, fields: Fields) => {
        const entered = await enter(visit, page, fields)
        requireOwnForm(entered, fields)
        const outcome = await acted(entered, page, () => post(entered, fields))
        if (outcome instanceof Html) return inArea(entered, page, all, [outcome])
        if (outcome.notice) leaveNotice(visit.ctx, visit.res, outcome.notice)
        return { to: visit.reader.href(outcome.to ?? page.path) }
      },
    }),
  })
}

/**
 * Returns the visit of the person who is logged in.
 * @throws Elsewhere if nobody is logged in, or if the page needs a credential first
 */
async function enter(visit: Visit, page: AccountPage, fields: Fields): Promise<AccountVisit> {
  const entered = await enterAs(visit, visit.reader.href(page.path))
  if (needsFresh(page, entered, fields) && !isFresh(visit.ctx, entered.session)) throw toConfirmation(visit, page)
  return entered
}

/** Runs the form's work. If the session has ended meanwhile, or is no longer fresh, redirects as the page itself would. */
async function acted(visit: Visit, page: AccountPage, act: () => Promise<Done | Html>): Promise<Done | Html> {
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

function isFresh({ settings }: AuthContext, { ageSeconds }: SessionOfRequest): boolean {
  return ageSeconds !== null && ageSeconds <= settings.freshSessionSeconds
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
