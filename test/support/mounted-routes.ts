import type { Route } from '../../src/http/routes'

/** The tables as they are mounted since the file began: what a router gets, so that no route can be left out. */
export const mountedRoutes: Route[][] = []

/**
 * `src/http/routes` watched, for `vi.mock`:
 * `vi.mock('../../src/http/routes', async (original) => (await import('../support/mounted-routes')).watchMounting(await original()))`
 */
export function watchMounting(real: typeof import('../../src/http/routes')): typeof real {
  const mountRoutes: typeof real.mountRoutes = (router, routes) => {
    mountedRoutes.push([...routes])
    real.mountRoutes(router, routes)
  }
  return { ...real, mountRoutes }
}
