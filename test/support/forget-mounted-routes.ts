import { mountedRoutes } from './mounted-routes'

mountedRoutes.length = 0
