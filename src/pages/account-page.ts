import type { AuthContext } from '../context'
import { InvalidTokenError, MfaRequiredError, ReauthenticationRequiredError } from '../core/errors'
import type { PageName } from '../core/templates'
import type { TextKey } from '../core/texts/phrase-book'
import { emptyForm, type FormState, Html, html, notice, type Part } from '../http/html/elements'
import type { Page } from '../http/html/send-page'
import type { Route } from '../http/routes'
import { leaveNotice, type NoticeWord, takeNotice } from '../sessions/cookies'
import { isFresh } from '../sessions/reauthentication/fresh-session'
import { endOthersCard } from './account/devices-page'
import { type AccountVisit, accountNavigation, enterAs, requireOwnForm, toSignIn } from './account-visit'
import type { Explaining } from './form-fault'
import { Elsewhere, pageRouteSets } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'

/** The result of a form that succeeded. */
export interface Done {
  /** The notice that the next page shows. */
  readonly notice?: NoticeWord
  /** The path below the prefix. Default: the page itself. */
  readonly to?: string
}

/**
 * A page of the account area. `show` and `post` run only for a person with a live session. If `needsFresh` requires a fresh session, they
 * run only with a fresh session. If a form was made for another person, the route rejects the form before `post`.
 */
export interface AccountPage extends Explaining {
  readonly page: PageName
  /** The path below the prefix. */
  readonly path: `/account${string}`
  readonly title: TextKey
  /** The label in the navigation. If undefined, the navigation does not contain the page. */
  readonly navigation?: TextKey
  /** Returns true if the page's feature is on. Otherwise the page does not exist, and no page links to it. */
  isThere(ctx: AuthContext): boolean
  /**
   * Whether the page needs a fresh session. If the session is not fresh, the person first confirms a credential and then returns to the
   * page. The function gets the fields of the form.
   */
  readonly needsFresh?: boolean | ((entered: AccountVisit, fields: Fields) => boolean)
  /** Other origins to which the form may redirect. */
  formTargets?(ctx: AuthContext): readonly string[]
  /** Returns the cards of the page. */
  show(visit: AccountVisit, state: FormState): Html | Promise<Html>
  /**
   * Handles the form. If the function throws, the page shows the form again with the error. For content that appears only once, the
   * function returns cards instead of `Done`. The response then has status 200.
   */
  post?(visit: AccountVisit, fields: Fields): Promise<Done | Html>
}

/** Returns the routes of the pages for the features that are on. */
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
      return inArea(entered, page, all, [said, afterRemoval(entered, word, all), await page.show(entered, state)])
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

const removals: ReadonlySet<NoticeWord | null> = new Set<NoticeWord>(['passkey_removed', 'connection_removed'])

/** Returns the form that signs the person out everywhere else, on the page after a credential was removed. */
function afterRemoval({ reader, formOf }: AccountVisit, word: NoticeWord | null, all: readonly AccountPage[]): Part {
  const devices = removals.has(word) ? all.find(({ page }) => page === 'devices') : undefined
  return devices ? endOthersCard(reader, { action: reader.href(devices.path), formOf }) : null
}

/**
 * Returns the visit of the logged-in person.
 * @throws Elsewhere if nobody is logged in, or if the page needs a credential first
 */
async function enter(visit: Visit, page: AccountPage, fields: Fields): Promise<AccountVisit> {
  const entered = await enterAs(visit, visit.reader.href(page.path))
  if (needsFresh(page, entered, fields) && !isFresh(entered.session, visit.ctx.settings.freshSessionSeconds))
    throw toConfirmation(visit, page)
  return entered
}

/** Runs the action of the form. If the session has ended or is no longer fresh, the function redirects as the page would. */
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
