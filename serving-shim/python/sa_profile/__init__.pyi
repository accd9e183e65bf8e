from ._sa_profile import (
    AsyncSpan as AsyncSpan,
    Launch as Launch,
    Request as Request,
    Span as Span,
    async_span as async_span,
    begin as begin,
    counter as counter,
    directory as directory,
    dropped as dropped,
    duration as duration,
    end as end,
    finish as finish,
    flow as flow,
    flush as flush,
    fragment as fragment,
    instant as instant,
    is_main as is_main,
    launch_timed as launch_timed,
    launch_walls as launch_walls,
    levels as levels,
    now_ns as now_ns,
    request as request,
    run as run,
    set_process_name as set_process_name,
    set_thread_name as set_thread_name,
    span as span,
    trace as trace,
)
from .env import (
    ProfileConfig as ProfileConfig,
    create_profile_config as create_profile_config,
    load_profile_config as load_profile_config,
)
from .merge import merge_fragments as merge_fragments
from .native_files import include_path as include_path, library_path as library_path, preload_path as preload_path
from .recorder import (
    ProfileRecorder as ProfileRecorder,
    configure_profiler as configure_profiler,
    get_profiler as get_profiler,
    is_enabled as is_enabled,
    merge_profile as merge_profile,
    profile_duration as profile_duration,
    profile_instant as profile_instant,
    profile_span as profile_span,
    start_profile as start_profile,
    stop_profile as stop_profile,
)
from .track import track as track
