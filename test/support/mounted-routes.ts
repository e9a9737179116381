import type { Router } from 'express'
import * as real from '../../src/http/routes'

/** The tables as they were mounted since the file began: what a router gets, so that no route can be left out. */
export const mountedRoutes: real.Route[][] = []

export * from '../../src/http/routes'

/**
 * Stands in front of src/http/routes.ts in the project `watching` of vitest.config.mts.
 * @public Called by the sources, which import it by another name: knip cannot see that.
 */
export function mountRoutes(router: Router, routes: readonly real.Route[]): void {
  if (routes.length > 0) mountedRoutes.push([...routes]) // what belongs at the root of the site is mounted apart, and is often empty
  real.mountRoutes(router, routes)
}
